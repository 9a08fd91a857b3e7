"""Communicators: their groups, topologies, and how they are made."""
