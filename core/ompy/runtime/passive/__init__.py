"""Passive mode: one job of processes that another launcher has started (see README.md)."""
