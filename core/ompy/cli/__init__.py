"""The command lines: `ompy-run`, `ompy-info`, `ompy`."""
