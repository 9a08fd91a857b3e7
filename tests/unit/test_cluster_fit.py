"""`tools/bench cluster_fit`: numbers that are known are found again, and the file can be read."""

from __future__ import annotations

import tomllib

import pytest
from ompy.runtime.cluster.cluster_file import cluster_of

pytest.importorskip("numpy")

from tools.bench import cluster_fit
from tools.bench.cluster_programs import BODIES, FITTED, Case, program_text

LATENCY, OVERHEAD, GAP = 2000.0, 500.0, 800.0  # ns
EACH = {0: 0.5, 4096: 0.25, 65_500: 0.1}  # ns per byte
LATER = 5000.0  # ns; what a rendezvous takes besides
BOTH = 15.0  # bytes per ns, of both directions


def one_way(size: int) -> float:
    """LogGP."""
    begin = max(border for border in EACH if border <= size)
    late = LATER if begin == 65_500 else 0.0
    return LATENCY + late + 2 * OVERHEAD + (size - 1) * EACH[begin]


def known_times() -> dict[Case, float]:
    found = {Case("ping-pong", size): 2 * one_way(size) for size in cluster_fit.SIZES}
    for begin in (0, 4096):
        size = begin + 1
        burst = one_way(size) + (cluster_fit.BURST - 1) * GAP + one_way(size)
        found[Case("burst", size)] = burst
    size = cluster_fit.EXCHANGED
    found[Case("exchange", size)] = LATENCY + LATER + 2 * OVERHEAD + 2 * size / BOTH
    return {case: time / 1e9 for case, time in found.items()}


def test_loggp_is_found_again() -> None:
    rows = cluster_fit.fit_way(known_times())["messages"]
    assert [row["from"] for row in rows] == list(EACH)
    for row in rows:
        late = LATER if row["rendezvous"] else 0.0
        assert row["gap"] == pytest.approx(GAP, rel=0.02)
        assert row["latency"] + 2 * row["overhead"] == pytest.approx(
            LATENCY + late + 2 * OVERHEAD, rel=0.02
        )
        assert 1 / row["bandwidth"] == pytest.approx(EACH[row["from"]], rel=0.02)
    assert [row["rendezvous"] for row in rows] == [False, False, True]


def test_both_directions_are_found_again() -> None:
    assert cluster_fit.fit_way(known_times())["rank_bandwidth"] == pytest.approx(BOTH, rel=0.02)


def test_the_file_can_be_read() -> None:
    fits = dict.fromkeys(cluster_fit.WAYS, cluster_fit.fit_way(known_times()))
    text = cluster_fit.file_text(fits, "a day", 0.25)
    cluster = cluster_of(tomllib.loads(text), "fitted.toml")
    assert cluster.memory == cluster.network
    assert cluster.memory.costs(70_000).rendezvous
    assert cluster.validated is not None
    assert cluster.validated.error == 0.25


@pytest.mark.parametrize("name", BODIES)
def test_programs_can_be_compiled(name: str) -> None:
    compile(program_text(name), name, "exec")


def test_nothing_that_is_predicted_was_fitted() -> None:
    assert not {case.program for case in cluster_fit.HELD} & set(FITTED)
    assert not {case.size for case in cluster_fit.HELD} & set(cluster_fit.SIZES)
