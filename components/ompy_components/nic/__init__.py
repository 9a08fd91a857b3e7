"""NICs."""
