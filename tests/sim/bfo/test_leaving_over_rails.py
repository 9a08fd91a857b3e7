"""A rail goes while a rank leaves: over the other one all hear of it, and nobody waits in vain.

The world is run once without a fault to know when the rank begins to finalize, and then with one
near that time: LEAVE, barrier_rounds and whatever is under way then are lost with the rail.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from random import Random

import pytest
from ompy.data.constants import ANY_SOURCE
from ompy.data.convertor import ContiguousConvertor
from ompy.engine.virtual_engine import Deadlock
from ompy.frameworks.pml import STANDARD
from ompy.net.faults.fault_rules import NEVER, FaultRule
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.sim.bfo.test_mixtures import RAILS, settings_of
from tests.sim.p2p.programs import world
from tests.support.effort import effort
from tests.support.leaving_cells import (
    VIRTUAL_PATIENCE,
    VIRTUAL_WAYS,
    Cell,
    Outcome,
    virtual_rank,
)
from tests.support.leaving_waits import GONE, WAITS
from tests.support.scripted_world import install
from tests.support.worlds import registry

WORLDS = effort(2)  # of each pair and kind of fault
ON_ONE_HOST = "Win.Allocate_shared"
NAMES = [name for name, wait in WAITS.items() if wait.in_worlds and ON_ONE_HOST not in name]
PAIRS = [("tcp", "tcp"), ("usnic", "usnic"), ("openib", "openib"), ("usnic", "tcp")]
NEAR = (-200_000, 400_000)  # ns around the beginning of MPI_Finalize; arbitrary
SECOND = 1_000_000_000  # ns
HEALS = 500_000_000  # ns until a rail comes back, where it does; arbitrary
FAULTS = {
    "black hole": FaultRule("black_hole"),
    "one way": FaultRule("black_hole", ranks=(GONE,)),
    "link down": FaultRule("link_down", ranks=(GONE,)),
    "its link down": FaultRule("link_down", ranks=(0,)),
}


def run(
    cell: Cell, pair: Sequence[str], seed: int, rules: Sequence[FaultRule]
) -> tuple[Outcome, int, int]:
    """What came of the wait, when the rank began to finalize, and how often the fault struck."""
    settings = {**settings_of(pair), "pml_bfo_leave_patience_ms": VIRTUAL_PATIENCE}
    job = VirtualJob(2, registry(**settings), seed=seed, rails=RAILS, hosts=[0, 1])
    faults, began = install(job, rules), []

    def program(process: RankProcess) -> list[Outcome]:
        if process.context.rank == GONE:
            now = process.context.engine.now
            process.before_finalize.append(lambda: began.append(now()))
        return virtual_rank(job, cell, process)

    ((found,), _) = job.run(program)
    return found, began[0], sum(sum(one.delivered) for one in faults)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_a_rail_goes_as_a_rank_leaves(pair: tuple[str, str]) -> None:
    struck = 0
    for what, seed in product(FAULTS, range(WORLDS)):
        chance = Random(f"{pair} {what} {seed}")
        way, early = chance.choice(VIRTUAL_WAYS), chance.random() < 0.5
        cell = Cell(chance.choice(NAMES), "", "bfo", way, early, met=True)
        again = partial(run, cell, pair, seed)
        _, began, _ = again(())
        rail = chance.choice(RAILS).name
        since = max(1, began + chance.randrange(*NEAR))
        until = chance.choice((NEVER, since + HEALS))
        rule = FAULTS[what]._replace(rails=(rail,), since=since, until=until)
        try:
            found, _, times = again([rule])
        except Deadlock as hang:
            pytest.fail(f"{cell}, {rule}, seed {seed}: {hang}")
        assert found.wrong() == "", (cell, rule, seed)
        struck += times
    assert struck, "no fault has struck"


def test_the_last_acknowledgements_go_into_a_black_hole() -> None:
    """MPI_Finalize waited for them for ever: btl/tcp had ceased to look whether any come."""
    hole = FaultRule("black_hole", rails=("second",), since=334_443)
    cell = Cell("Imrecv of what it sends", "", "bfo", "finalizes", early=False, met=True)
    found, _, struck = run(cell, ("tcp", "tcp"), 4, [hole])
    assert struck
    assert found.wrong() == ""


def test_a_receive_that_is_under_way_when_its_rails_end() -> None:
    """It was given up after the BTL had closed: MPI_ERR_INTERN, not registered here."""
    cell = Cell("Send of what it receives", "", "bfo", "silently", early=False, met=True)
    found, *_ = run(cell, ("openib", "openib"), 22, ())
    assert found.wrong() == ""


@pytest.mark.parametrize("source", [GONE, ANY_SOURCE])
def test_what_comes_long_after_the_news(source: int) -> None:
    """A rank in MPI_Finalize delivers what it has sent: longer than the silence is patient."""
    patience = 1_000  # ms
    slow = FaultRule("delay", rails=("first",), ranks=(GONE,), since=SECOND, delay=2 * SECOND)
    settings = {**settings_of(("tcp", "tcp")), "pml_bfo_leave_patience_ms": patience}
    job = VirtualJob(2, registry(**settings), seed=1, rails=RAILS, hosts=[0, 1])
    faults = install(job, [slow])

    def program(process: RankProcess) -> int:
        comm, pml, engine = world(process), process.pml, process.context.engine
        data = ContiguousConvertor(bytearray(8))
        if comm.rank != GONE:
            for _ in range(5):
                pml.recv(comm, data, source, 1)
            return engine.now()
        for turn in range(5):
            if turn == 2:
                engine.wait_until(lambda: False, SECOND - engine.now())
            pml.isend(comm, data, 0, 1, STANDARD)
        return engine.now()

    took, gone = job.run(program)
    assert sum(sum(one.delivered) for one in faults)
    assert took - gone > 1_000_000 * patience
