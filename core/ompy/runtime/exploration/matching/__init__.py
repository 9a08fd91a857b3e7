"""Which receive takes which message, and what ranks know of one another by that."""
