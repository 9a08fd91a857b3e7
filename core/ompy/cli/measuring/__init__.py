"""`ompy bench`."""
