"""One stream of typed events from every layer; exporters are imported by tools only."""
