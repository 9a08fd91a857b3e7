"""Collectives and teams of GASNet."""
