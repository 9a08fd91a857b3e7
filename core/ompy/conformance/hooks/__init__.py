"""The kit for packages of life-cycle hooks."""
