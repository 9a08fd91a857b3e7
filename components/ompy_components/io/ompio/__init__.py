"""Files of the local or a shared file system, with two-phase collective access."""
