"""Agents that wait to be called, where nothing starts a program on another host."""
