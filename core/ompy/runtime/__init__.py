"""Launcher, agents and the rank's side of them: start, wire-up, output, end."""
