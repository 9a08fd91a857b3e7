"""`ompy explain`."""
