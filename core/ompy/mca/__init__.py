"""Variables and their sources, plug-in discovery, selection. Knows nothing of messages."""
