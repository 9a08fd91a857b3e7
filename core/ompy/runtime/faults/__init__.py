"""Fault scripts as users write them, and what is told of them."""
