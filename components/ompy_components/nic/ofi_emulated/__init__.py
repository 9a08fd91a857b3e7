"""Libfabric's reliable datagram endpoints, emulated over streams."""
