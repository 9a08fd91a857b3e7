"""PML `monitoring`: wraps the selected PML, counts messages and bytes per peer, and tells."""
