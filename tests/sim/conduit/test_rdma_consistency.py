"""GASNET_GNI_MEM_CONSISTENCY: what a rank sees of two puts that nobody waited for."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.conduit_parameters import NAMES
from tests.support.rdma_ranks import Count, RdmaRank, rdma_world

DATA = b"\x77" * 300  # several packets
SEEDS = range(16)


def seen(generation: str, consistency: str, seed: int) -> str:
    """What is there of the data when the flag that was put after it is."""

    def writer(rank: RdmaRank) -> None:
        told = Count()
        rank.outside[: len(DATA)] = DATA
        rank.outside[1000] = 1
        rank.engine.put(1, 0, rank.outside[: len(DATA)], told, bulk=True)
        rank.engine.put(1, 1000, rank.outside[1000:1001], told, bulk=True)
        rank.context.engine.remove_poller(rank)
        while told.puts < 2:
            rank.let_time_pass()  # the reader looks before anything more happens
            rank.engine.poll_local()
        rank.context.engine.add_poller(rank)
        assert rank.world[1].segment[: len(DATA)] == DATA, (
            "what is done can be seen, whatever it is"
        )

    def reader(rank: RdmaRank) -> str:
        while not rank.segment[1000]:
            rank.let_time_pass()
        there = bytes(rank.segment[: len(DATA)])
        if there == DATA:
            return "all"
        return "parts" if any(there) else "nothing"

    return str(
        rdma_world(
            [writer, reader],
            generation=generation,
            seed=seed,
            mem_consistency=consistency,
            poll_burst=1,
            device={"late": 60},
        )[1]
    )


@pytest.mark.parametrize("generation", NAMES)
@pytest.mark.parametrize(
    ("consistency", "possible"),
    [
        ("strict", {"all"}),
        ("default", {"all", "nothing"}),
        ("relaxed", {"all", "nothing", "parts"}),
    ],
)
def test_consistencies_differ(generation: str, consistency: str, possible: set[str]) -> None:
    found = Counter(seen(generation, consistency, seed) for seed in SEEDS)
    assert set(found) <= possible
    assert "parts" in found or consistency != "relaxed"
    assert "nothing" in found or consistency != "default"
