"""Queue pairs and completion queues: their room, credits and tokens, and what waits for these."""
