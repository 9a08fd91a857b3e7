"""bfo's goodput over openib rails in virtual time: the committed curve, found again."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path

import pytest
from ompy.net.faults.fault_rules import FaultRule

from tests.support.effort import THOROUGH
from tests.support.rail_streams import goodput

ROOT = Path(__file__).resolve().parents[3]
FIGURE = ROOT / "docs" / "figures" / "bfo-goodput.csv"
BUS = 50_000  # Mbit/s of PCIe 3.0 x8, Neugebauer et al. 2018: what one adapter can do
BYTES = 32 << 20  # as tools/bench bfo_goodput has it
SIZES = tuple(8 << n for n in range(0, 21, 2))
CELLS = [*product((1, 2, 3), SIZES)] if THOROUGH else [(1, 8), (2, 8192)]


def curve() -> dict[tuple[int, int], float]:
    with FIGURE.open() as file:
        rows = list(csv.DictReader(file))
    return {(int(row["rails"]), int(row["bytes"])): float(row["Mbit/s"]) for row in rows}


@pytest.mark.parametrize(("rails", "size"), CELLS)
def test_every_machine_finds_the_same(rails: int, size: int) -> None:
    found = goodput(rails, size, max(8, min(256, BYTES // size)))
    assert round(found, 1) == curve()[rails, size]


def test_large_messages_use_all_rails_and_none_beyond_its_bus() -> None:
    found = curve()
    large = 2 << 20
    one, two, three = (found[rails, large] for rails in (1, 2, 3))
    assert 0.7 * BUS < one < BUS
    assert 1.8 * one < two < 2 * BUS
    assert 2.6 * one < three < 3 * BUS


def test_a_rail_that_is_cut_leaves_the_other_ones_goodput() -> None:
    """Everything arrives; what it took to find out is not forgotten."""
    cut = FaultRule("black_hole", rails=("rail0",), since=1_000_000)
    both = goodput(2, 1 << 18, 40)
    left = goodput(2, 1 << 18, 40, [cut])
    assert left < both
