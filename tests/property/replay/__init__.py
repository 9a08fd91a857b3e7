"""Recordings, in any state."""
