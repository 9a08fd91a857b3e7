"""The paths to peers: whether they carry packets, what becomes of broken ones, and who is told."""
