"""A PML from a package of its own."""
