"""Run a pytest test on n MPI ranks.

PYTEST_DONT_REWRITE: a rank imports this package before pytest could, and it tests nothing.
"""

from __future__ import annotations

__version__ = "0.1.0"
