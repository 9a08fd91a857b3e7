"""A BTL from a package of its own."""
