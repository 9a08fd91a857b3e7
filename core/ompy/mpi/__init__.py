"""The MPI API over the PML: communicators, datatypes, operations, requests."""
