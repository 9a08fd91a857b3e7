"""What is done in windows: recorded, and done again in the same order."""
