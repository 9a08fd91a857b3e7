"""Hosts that are lost while the job goes on: whatever is lost and when, all come to an end."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.control_world import Shape, World, faults
from tests.support.effort import THOROUGH

SHAPES = [
    Shape(2, 2, 2, 1, survives=True),
    Shape(3, 1, 1, 2, survives=True),
    Shape(3, 3, 2, 3, survives=True),
    Shape(4, 2, 1, 4, spawned=2, survives=True),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_fault(shape: Shape) -> None:
    """One at a time, at every act of every process and every message; CI takes a share."""
    became: Counter[str] = Counter()
    every = list(faults(shape))
    for fault in every if THOROUGH else every[:: len(every) // 50]:
        world = World(shape, fault).run()
        found = [finding.name for finding in world.launcher.findings]
        code = world.launcher.code
        killed = fault.target == "launcher"
        assert code is not None or killed, fault
        assert found.count("job failed") == int(bool(code)), fault
        became["on" if "host lost" in found and not code else "ended"] += 1
    assert became["on"] > 2, became
    assert became["ended"] > 5, became
