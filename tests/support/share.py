"""A share of the cases of tests that have many: what CI takes, while nights take all.

`OMPY_SHARE=0.4` keeps two fifths of the cases of each test, one at least, and the same ones in each
run. Tests of defects that were found once keep all.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from hashlib import blake2b

import pytest

SHARED = ("tests/sim/", "tests/conformance/", "tests/property/", "tests/proc/")
WHOLE = "bugs"  # in the names of modules with a case for each defect of the past


def left_out(items: list[pytest.Item]) -> set[pytest.Item]:
    """The cases that this run does without."""
    share = float(os.environ.get("OMPY_SHARE", "1"))
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items if share < 1 else ():
        module, _, _ = item.nodeid.partition("::")
        if "[" in item.nodeid and module.startswith(SHARED) and WHOLE not in module:
            cases[item.nodeid.partition("[")[0]].append(item)
    return {
        item
        for group in cases.values()
        for item in sorted(group, key=_draw)[math.ceil(share * len(group)) :]
    }


def _draw(item: pytest.Item) -> bytes:
    """What decides, of the case's name: neighbours are no more alike than others."""
    return blake2b(item.nodeid.encode(), digest_size=8).digest()
