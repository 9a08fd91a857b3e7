"""Which form of the hot modules a run tests: `tools/check.py compiled` sets the variable."""

from __future__ import annotations

import os

import pytest

COMPILED = "OMPY_TEST_COMPILED" in os.environ

# compiled methods cannot be replaced, so `tests/conftest.py` skips these there
interpreted_only = pytest.mark.interpreted
