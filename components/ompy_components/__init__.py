"""In-tree components."""

import ompy  # noqa: F401 - it finds the compiled form of what is in here
