"""Calls that all members of a communicator make together, and what they reduce with."""
