"""A share of the cases of tests that have many: what CI takes, while nights take all.

`OMPY_SHARE=0.4` keeps two fifths of the cases of each test, one at least, and the same ones in each
run. A unit test keeps `UNIT_CASES` at least. Tests of defects that were found once keep all. Tests
marked `nightly` are left out whole: they take seconds, and something quicker tests what is nearest.

With `OMPY_TURN`, a number, two thirds of the tests of whole jobs wait for another one: those in
worlds, those that start real processes, the kits, the properties. CI gives the commit's number, so
that a handful of commits runs them all.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from hashlib import blake2b

import pytest

SHARED = ("tests/sim/", "tests/conformance/", "tests/property/", "tests/proc/")
UNIT, UNIT_CASES = "tests/unit/", 20  # arbitrary: they are quick, but for those that have hundreds
TURNS = 3  # arbitrary: with them `.ci/run` takes less than 15 minutes
EVERY_TIME = "tests/interop/"  # a floor that is held at each commit
WHOLE = "bugs"  # in the names of modules with a case for each defect of the past


def left_out(items: list[pytest.Item]) -> set[pytest.Item]:
    """The cases that this run does without."""
    share = float(os.environ.get("OMPY_SHARE", "1"))
    if share >= 1:
        return set()
    turn = os.environ.get("OMPY_TURN", "")
    nightly = {
        item
        for item in items
        if item.get_closest_marker("nightly") is not None or (turn and _waits(item, int(turn)))
    }
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        module, _, _ = item.nodeid.partition("::")
        if "[" in item.nodeid and module.startswith((*SHARED, UNIT)) and WHOLE not in module:
            cases[item.nodeid.partition("[")[0]].append(item)
    return nightly | {
        item
        for group in cases.values()
        for item in sorted(group, key=_draw)[_kept(group[0], share * len(group)) :]
    }


def _waits(item: pytest.Item, turn: int) -> bool:
    """Whether a test is of whole jobs, and another turn's."""
    whole = item.get_closest_marker("proc") is not None or item.nodeid.startswith(SHARED)
    if not whole or item.nodeid.startswith(EVERY_TIME):
        return False
    return _draw(item)[-1] % TURNS != turn % TURNS


def _kept(item: pytest.Item, share: float) -> int:
    """How many cases of a test stay."""
    return max(math.ceil(share), UNIT_CASES if item.nodeid.startswith(UNIT) else 1)


def _draw(item: pytest.Item) -> bytes:
    """What decides, of the case's name: neighbours are no more alike than others."""
    return blake2b(item.nodeid.encode(), digest_size=8).digest()
