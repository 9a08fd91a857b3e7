"""Ranks that do not go on: what they are asked, and what follows from their answers."""
