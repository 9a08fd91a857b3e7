"""Sequence diagrams: what is in them, where it stands, and how it is drawn."""
