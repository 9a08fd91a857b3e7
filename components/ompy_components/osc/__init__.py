"""One-sided communication."""
