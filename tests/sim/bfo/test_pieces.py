"""Pieces that are put over several rails: short ones, and only what was lost goes again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from ompy.frameworks.bml import Rail
from ompy.frameworks.btl import PUT, Endpoint
from ompy.runtime.simulation.virtual_job import VirtualJob
from ompy_components.pml.bfo.headers import RESTART_NAMES
from ompy_components.pml.bfo.put_pieces import LATE_MAX, Paces

from tests.sim.ob1.programs import one_message
from tests.support.effort import effort
from tests.support.failing_rails import US, WRITE, FailingRail, Fault, failing_world

SIZE, PIECE = 60_000, 2_000
RAIL = FailingRail(
    flags=PUT,
    eager_limit=1024,
    rndv_eager_limit=500,
    max_send_size=2048,
    min_rdma_pipeline_size=4_000,
    pipeline_frag_size=PIECE,
    pipeline_send_length=0,  # no FRAGs, which would dance
)
DANCE = set(RESTART_NAMES.values()) - {"FINAL_BARRIER"}


def names(job: VirtualJob) -> Counter[str]:
    """Transfers by name."""
    return Counter(name for name, _, _ in job.net.log)


def put_bytes(job: VirtualJob) -> int:
    """Bytes handed to BTLs as puts."""
    return sum(count for (_, kind), count in job.net.moved.items() if kind == "put")


@pytest.mark.parametrize("what", ["lost", "error", "late", "refused"])
@pytest.mark.parametrize("fragment", [WRITE, "PUT", "FIN"])
def test_nothing_dances_and_little_goes_again(fragment: str, what: str) -> None:
    """A put, a PUT or a FIN in the middle of a message: nothing but what it was about."""
    struck = again = 0
    places = range(2, 26, 24 // min(24, effort(6)))
    for nth in places:
        fault = Fault(what, fragment, nth)
        job = failing_world([one_message(SIZE)] * 2, [RAIL] * 2, [fault], seed=nth)
        struck += sum(job.net.delivered.values())
        counted = names(job)
        assert not counted.keys() & DANCE, job.net.log
        assert counted["RNDV"] == 1
        twice = put_bytes(job) + PIECE * counted["FRAG"] - SIZE
        assert twice <= 4 * PIECE, "more than was under way goes again"
        again += twice
    assert struck == len(places)
    if fragment == WRITE and what != "refused":
        assert again >= PIECE * len(places) - SIZE % PIECE


@pytest.mark.parametrize("what", ["error", "late"])
def test_a_put_asked_for_twice_is_done_once(what: str) -> None:
    """The first PUT arrives after all, before or after the one over the other rail."""
    dropped = 0
    for nth in range(2, 20):
        fault = Fault(what, "PUT", nth)
        job = failing_world([one_message(SIZE)] * 2, [RAIL] * 2, [fault], seed=nth)
        assert sum(job.net.delivered.values()) == 1
        sender = job.processes[0].pml
        dropped += sender.counters.get("PUT", 0)
        assert not sender.sending.puts._seen
    assert dropped, "no PUT ever came twice"


@pytest.mark.parametrize("seed", range(effort(3)))
def test_a_message_under_way_uses_a_healed_rail(seed: int) -> None:
    rail = replace(RAIL, heal=60 * US, notice=5 * US, other_end=5 * US, bandwidth=500)
    fault = Fault("lost", WRITE, 3)
    job = failing_world([one_message(SIZE)] * 2, [rail] * 2, [fault], seed=seed)
    assert job.net.delivered["lost"] == 1
    events = job.processes[0].context.rail_events
    assert len(events) == 1
    assert events[0].healed
    broken = next(event.rail for event in events)
    index = 0 if "0" in broken.split()[0] else 1
    carried = [rail for name, _, rail in job.net.log if name == WRITE]
    gap = [number for number, rail in enumerate(carried) if rail == index]
    assert carried[-6:].count(index) or gap[-1] > 20, carried


def test_what_was_lost_goes_as_fragments_where_nothing_else_puts() -> None:
    job = failing_world(
        [one_message(SIZE)] * 2,
        [RAIL, replace(RAIL, flags=0)],
        [Fault("lost", WRITE, 3)],
    )
    assert job.net.delivered["lost"] == 1
    assert names(job)["FRAG"] > 10


@pytest.mark.parametrize(("rails", "pieces"), [(1, 1), (2, 4)])
def test_pieces_are_short_where_there_is_another_rail(rails: int, pieces: int) -> None:
    rail = replace(RAIL, pipeline_frag_size=1 << 30)
    parameters = {"piece_ms": 1, "piece_least": PIECE}
    job = failing_world([one_message(SIZE)] * 2, [rail] * rails, parameters=parameters)
    assert names(job)[WRITE] >= pieces
    assert (names(job)[WRITE] == 1) == (rails == 1)
    unbounded = {"piece_ms": 0, "piece_least": PIECE}
    job = failing_world([one_message(SIZE)] * 2, [rail] * rails, parameters=unbounded)
    assert names(job)[WRITE] == rails


def test_paces_follow_the_rail() -> None:
    rail = Rail.__new__(Rail)
    rail.endpoint = Endpoint.__new__(Endpoint)
    paces = Paces(aim=20_000, least=1_000)
    sizes = []
    for _ in range(12):  # 10 bytes in a ns, with 4 pieces under way
        sizes.append(paces.size(rail))
        paces.took(rail, sizes[-1], 4 * sizes[-1] // 10)
    assert sizes[:3] == [1_000, 2_000, 4_000]
    assert 20_000 <= sizes[-1] <= 50_000, sizes
    for _ in range(LATE_MAX - 1):
        assert paces.size(rail) == sizes[-1]  # it was held up
        paces.took(rail, sizes[-1], 2_000_000)
    paces.took(rail, sizes[-1], 2_000_000)  # no, it is slow
    assert paces.size(rail) == 1_000
    paces.took(rail, 10, 1)  # the short end of a message says little
    assert paces.size(rail) == 1_000
