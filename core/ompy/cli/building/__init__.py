"""Compiling the hot modules: for a wheel, for a tree to test and measure, and in place."""
