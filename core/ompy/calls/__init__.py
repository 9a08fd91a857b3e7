"""Calls of the API as events of a trace, where a rank is traced."""
