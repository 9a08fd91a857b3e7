"""MCA parameters: what users have set and where, which source wins, and what a value may be."""
