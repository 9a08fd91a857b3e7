"""The figure of GASNet's ways by size is what every machine finds, and near what was published."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.support.effort import THOROUGH
from tests.support.gasnet_timing import WAYS, WHERE, crossing, latency, measured, series, sizes

FIGURE = Path(__file__).parents[3] / "docs" / "figures" / "gasnet-crossover.csv"
MOST = 1 << 20 if THOROUGH else 1 << 12


@pytest.mark.parametrize("generation", ["gemini", "aries"])
def test_the_figure_is_what_is_measured(generation: str) -> None:
    """A series of fewer sizes is another world, so its polls may fall some ns elsewhere."""
    with FIGURE.open() as file:
        drawn = {tuple(row[:4]): float(row[4]) for row in list(csv.reader(file))[1:]}
    for nic, where, way, size, ns in measured(generation, MOST):
        assert drawn[nic, where, way, str(size)] == pytest.approx(ns, abs=100), (where, way, size)


@pytest.mark.parametrize(("generation", "published"), [("gemini", 700), ("aries", 980)])
def test_eight_bytes_are_seen_when_published_figures_say(generation: str, published: int) -> None:
    assert latency(generation, WHERE["two hosts"]) == pytest.approx(published, rel=0.1)


@pytest.mark.parametrize("generation", ["gemini", "aries"])
def test_ways_cross_near_the_cut_overs(generation: str) -> None:
    near = sizes("one host", 1 << 15)
    fma, bte, bounce, registered = (
        series(generation, WAYS[way], near, WHERE["one host"])
        for way in ("FMA", "BTE", "BTE, bounce buffer", "BTE, registered")
    )
    assert crossing(fma, bte) == pytest.approx(4_096, rel=0.1)
    assert crossing(bounce, registered) == pytest.approx(8_192, rel=0.15)
