"""Run a pytest test on n MPI ranks."""

from __future__ import annotations

__version__ = "0.1.0"
