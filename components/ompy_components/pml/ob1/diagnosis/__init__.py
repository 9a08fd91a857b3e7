"""What ob1 can be asked: why a message takes a protocol, what waits, which steps were taken."""
