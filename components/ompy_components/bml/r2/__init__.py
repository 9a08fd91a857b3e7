"""BML r2: which BTL modules carry what to a peer."""
