"""What a rank and an agent know of each other rank is bounded, in bytes."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import pytest
from ompy.frameworks.catalog import CATALOG
from ompy.frameworks.job import App, Job, Placement
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.registry import Registry
from ompy.runtime.connections.modex import CardIndex, ModexStore, bundle
from ompy.runtime.machines.agents.local_ranks import LocalRanks, RankLife
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.ranks.rank_start import procs_of
from ompy.runtime.simulation.virtual_job import VirtualJob

PROC = 200  # bytes of a `Proc` and its place in a list; arbitrary: above what is measured
UNKNOWN = 16  # bytes of a rank that nobody has looked for; measured: 8
KNOWN = 200  # bytes of a commit of 59 bytes in an agent; measured: 129 to 160
PEER = 400  # bytes of a peer in a rank that has sent it nothing; measured: 154 and 333


def used_bytes(make: Callable[[], object]) -> int:
    """Memory of what a call makes."""
    gc.collect()
    tracemalloc.start()
    try:
        made = make()
        gc.collect()
        used, _ = tracemalloc.get_traced_memory()
        del made
        return used
    finally:
        tracemalloc.stop()


def job_of(ranks: int) -> Job:
    return Job(
        "0" * 16,
        (App(("a",), ranks),),
        tuple(f"host{node}" for node in range(ranks // 16)),
        tuple(Placement(rank, 0, *divmod(rank, 16)) for rank in range(ranks)),
    )


def slope(small: int, large: int, make: Callable[[int], Callable[[], object]]) -> float:
    return (used_bytes(make(large)) - used_bytes(make(small))) / (large - small)


def test_a_rank_knows_a_process_by_a_few_numbers() -> None:
    def make(ranks: int) -> Callable[[], object]:
        job = job_of(ranks)
        return lambda: procs_of(job, ranks)

    assert slope(1600, 3200, make) <= PROC


def test_the_launcher_keeps_what_a_rank_has_published() -> None:
    def make(ranks: int) -> Callable[[], object]:
        placements = job_of(ranks).placements

        def fill() -> CardIndex:
            index = CardIndex()
            for rank in range(ranks):
                index.commit(bundle({rank: bytes(59)}), placements)
            return index

        return fill

    assert slope(1600, 3200, make) <= KNOWN


def test_an_agent_keeps_of_other_hosts_only_where_their_ranks_are() -> None:
    def make(ranks: int) -> Callable[[], object]:
        hosts = [placement.node for placement in job_of(ranks).placements]
        return lambda: LocalRanks([RankLife(0)], hosts, 0, several=True)

    assert slope(1600, 3200, make) <= UNKNOWN


def test_an_agent_keeps_what_a_rank_has_published() -> None:
    def make(ranks: int) -> Callable[[], object]:
        def fill() -> ModexStore:
            store = ModexStore(frozenset({0}), [0] * ranks, 0)
            for rank in range(ranks):
                store.commit(rank, bytes(59))
            return store

        return fill

    assert slope(1600, 3200, make) <= KNOWN


@pytest.mark.nightly
@pytest.mark.parametrize("btl", ["self,tcp", "self,usnic"])
def test_connections_are_made_when_they_are_used(btl: str) -> None:
    """What grows with the square of ranks is small: nobody has an endpoint of everybody."""

    def all_use(ranks: int) -> int:
        """Bytes of all ranks, when they have been brought up and none has left."""
        registry = Registry(CATALOG, gather_settings([("btl", btl)], {}, files=[]))
        seen = []

        def look(process: RankProcess) -> None:
            process.context.wireup.fence()
            gc.collect()
            seen.append(tracemalloc.get_traced_memory()[0])

        tracemalloc.start()
        try:
            VirtualJob(ranks, registry, hosts=list(range(ranks))).run(look)
        finally:
            tracemalloc.stop()
        return seen[0]

    all_use(2)  # what is imported is nobody's
    step = 12
    few, more, many = (all_use(count * step) for count in (1, 2, 3))
    # all of it is c + a n + b n^2, and b is what each knows of each
    assert (many - 2 * more + few) / (2 * step * step) <= PEER
