"""`ompy new`: a small distribution with a component that works, for an author to complete."""
