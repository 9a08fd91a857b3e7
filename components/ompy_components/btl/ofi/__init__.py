"""btl/ofi: put, get, atomics and fragments over libfabric."""
