"""Messages from one rank to another, and the requests of all that is under way."""
