"""NIC libfabric: the real library, over whatever providers it has on this host."""
