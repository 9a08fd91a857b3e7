"""Memory between processes of one host: rings, regions and their locks, copies by the kernel."""
