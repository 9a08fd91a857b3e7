"""Agents that ask each other over a rail whether it still carries packets."""
