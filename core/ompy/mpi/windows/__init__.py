"""Windows: memory that other processes load from and store into."""
