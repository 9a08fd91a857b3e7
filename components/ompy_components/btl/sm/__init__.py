"""BTL sm: shared memory between the ranks of one host."""
