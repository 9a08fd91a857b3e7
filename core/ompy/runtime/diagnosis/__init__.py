"""What is said of ranks that stand still or have failed: where they are, who waits for whom."""
