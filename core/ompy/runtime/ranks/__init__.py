"""A rank: how its process begins, and how it is brought up from its parts."""
