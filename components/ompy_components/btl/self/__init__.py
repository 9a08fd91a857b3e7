"""BTL self: a rank's messages to itself."""
