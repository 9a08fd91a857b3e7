"""BTL tcp: TCP connections, one per pair of ranks and interface."""
