"""Conduits: what GASNet runs over."""
