"""Which form of the hot modules a run tests: `tools/check.py compiled` sets the variable."""

from __future__ import annotations

import os

import pytest

COMPILED = "OMPY_TEST_COMPILED" in os.environ

interpreted_only = pytest.mark.skipif(
    COMPILED, reason="compiled methods cannot be replaced: the interpreted run plants the defects"
)
