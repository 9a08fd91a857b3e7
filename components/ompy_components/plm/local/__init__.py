"""In-tree components."""
