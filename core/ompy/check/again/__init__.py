"""Calls that are made again as they were, which no handler is asked for."""
