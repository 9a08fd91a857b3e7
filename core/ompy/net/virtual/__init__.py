"""The network of a virtual world: its rails and ports, and the memory of its hosts."""
