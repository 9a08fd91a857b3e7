"""What goes wrong on a wire on purpose: single faults, and fault scripts at work."""
