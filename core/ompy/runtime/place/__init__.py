"""Which hardware threads each rank of a host may run on."""
