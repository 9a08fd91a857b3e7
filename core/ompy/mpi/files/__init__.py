"""Files that several processes read and write together."""
