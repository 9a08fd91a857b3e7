"""BTL udplite: fragments over UDP."""
