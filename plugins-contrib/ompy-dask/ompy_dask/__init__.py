"""Ranks of ompy on the workers of a Dask cluster: `ompy_dask.run(client, n, function, ...)`."""

from __future__ import annotations

from ompy_dask.running import JobFailed, run

__all__ = ["JobFailed", "run"]
