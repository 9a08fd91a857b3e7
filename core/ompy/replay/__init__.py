"""Records what a real run did not determine, and runs it again."""
