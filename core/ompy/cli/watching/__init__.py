"""`ompy ps` and `ompy top`."""
