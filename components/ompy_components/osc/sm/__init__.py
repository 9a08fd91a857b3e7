"""osc sm: windows in memory that all members share."""
