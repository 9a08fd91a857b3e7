"""Ranks that leave or die: who is told, and what lets the others go on."""
