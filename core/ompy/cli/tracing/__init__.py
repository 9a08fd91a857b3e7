"""`ompy trace`."""
