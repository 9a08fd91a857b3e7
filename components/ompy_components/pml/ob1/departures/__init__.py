"""What becomes of messages when ranks leave, fail or die, or a communicator is revoked."""
