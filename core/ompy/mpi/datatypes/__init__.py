"""Datatypes: their making, their contents, their representations."""
