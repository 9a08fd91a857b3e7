"""Files that several ranks share."""
