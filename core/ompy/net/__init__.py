"""What carries bytes: streams, datagrams, shared memory, cross-process copy; and their twins."""
