"""Small worlds of bfo whose rails die in the middle of everything.

A world has a number and is drawn from it: its programs (who sends what to whom, who posts which
receive), its rails (what each can do, how soon an end notices, whether it heals) and which of the
transfers are struck by which faults. The programs are checked against the reference matcher: every
message once, in order, with all its bytes, and nothing else; and nothing may be left behind.

Worlds come in groups that share programs and rails. The first run of a group is dry: it tells how
many transfers there are to be struck, so a fault that is drawn strikes. In most worlds one rail is
spared; in those of the class "all rails" none is, and what may happen there is a clean MPI error.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.frameworks.btl import GET, PUT

from tests.property.ob1.test_matching_model import Posted, Sent, compare, run_rank
from tests.support.failing_rails import KINDS, US, FailingRail, Fault, failing_world
from tests.support.small_programs import draw_programs

GROUP = 10  # worlds that share programs and a dry run
TRAFFIC = {  # ranks, actions of a rank, sizes
    "tiny": (2, 10, (0, 1, 100, 256, 700)),
    "mixed": (2, 8, (0, 100, 900, 1300, 5000, 15_000)),
    "large": (2, 3, (9_000, 25_000, 60_000)),
    "three ranks": (3, 6, (0, 700, 1500, 9_000)),
}
RAILS = ("send", "put", "get", "mixture", "all rails")
CLASSES = [  # with three, one that gives up leaves the others waiting for it
    (traffic, rails)
    for traffic, (ranks, *_) in TRAFFIC.items()
    for rails in RAILS
    if ranks == 2 or rails != "all rails"
]


@dataclass(frozen=True)
class Design:
    """What the worlds of a group have in common.

    Attributes:
        traffic, kind: of `TRAFFIC` and `RAILS`.
        programs: of the ranks.
        rails: between them.
        first: number of the first message of each pair.
        parameters: bfo's that are not the default.
    """

    traffic: str
    kind: str
    programs: list[list[Sent | Posted]]
    rails: tuple[FailingRail, ...]
    first: int = 1
    parameters: dict[str, object] = field(default_factory=dict)

    @property
    def immortal(self) -> tuple[int, ...]:
        """The rail that is spared."""
        return () if self.kind == "all rails" else (len(self.rails) - 1,)


@dataclass
class Outcome:
    """What a world came to.

    Attributes:
        transfers: that a fault could have struck.
        counted: faults by kind, messages, bytes, rail events, restarts and what was dropped.
    """

    transfers: int = 0
    counted: Counter[str] = field(default_factory=Counter)


def draw(group: int) -> Design:
    """The programs and rails of a group."""
    traffic, kind = CLASSES[group % len(CLASSES)]
    random = Random(f"group {group}")
    ranks, actions, sizes = TRAFFIC[traffic]
    programs = draw_programs(random, ranks, actions, sizes)
    rails = tuple(_rail(random, kind) for _ in range(random.choice((2, 2, 2, 3))))
    first = random.choice((1, 2**32 - 3))  # the numbers wrap soon
    limits: dict[str, object] = {
        "message_window": random.choice((65_536, 65_536, 1, 3)),
        "unexpected_bytes": random.choice((2**27, 2**27, 1, 900)),
    }
    return Design(traffic, kind, programs, rails, first, limits)


def _rail(random: Random, kind: str) -> FailingRail:
    able = {"send": 0, "put": PUT, "get": PUT | GET}
    flags = able[kind] if kind in able else random.choice((0, PUT, GET, PUT | GET))
    eager = random.choice((300, 1024, 4096))
    # where a peer may be lost for good both ends have to hear of it: nobody else could tell them
    told = kind == "all rails"
    return FailingRail(
        flags=flags,
        bandwidth=random.choice((500, 1000, 4000)),
        latency=random.choice((1, 1, 1, 5)),
        eager_limit=eager,
        rndv_eager_limit=random.choice((100, eager)),
        max_send_size=max(eager, random.choice((0, 2048, 8192))),
        pipeline_send_length=random.choice((0, 2000)),
        pipeline_frag_size=random.choice((2000, 8000)),
        min_rdma_pipeline_size=random.choice((0, 20_000)),
        put_limit=random.choice((0, 0, 3000)),
        get_limit=random.choice((0, 0, 3000)),
        descriptors=random.choice((3, 8, 1000)),
        inplace=random.random() < 0.5,
        sendi=random.random() < 0.5,
        notice=random.choice((0, 20 * US, 200 * US)),
        other_end=random.choice((0, 30 * US, 300 * US, 30 * US if told else -1)),
        heal=0 if told else random.choice((0, 0, 50 * US, 500 * US)),
    )


def script(number: int, design: Design, transfers: int) -> list[Fault]:
    """The faults of a world: one, two or three of its transfers."""
    random = Random(f"world {number}")
    count = random.choice((1, 1, 2, 3))
    places = sorted(random.sample(range(1, transfers + 1), min(count, transfers)))
    return [
        Fault(random.choice(KINDS), nth=nth, delay=random.choice((20, 400)) * US) for nth in places
    ]


@cache
def dry_run(group: int) -> tuple[Design, int]:
    """A group, and how many transfers its first run could have had struck."""
    design = draw(group)
    return design, run(design, group * GROUP, []).transfers


def world(number: int) -> tuple[Design, Outcome]:
    """Run the world of this number.

    Raises:
        AssertionError: a message was lost, doubled, reordered or altered, something was left
            behind, or no fault struck.
    """
    design, transfers = dry_run(number // GROUP)
    faults = script(number, design, transfers)
    outcome = run(design, number, faults)
    if outcome.transfers and not _struck(outcome):  # this run had fewer than the dry one, or more
        kind = faults[0].what if faults else Random(f"kind {number}").choice(KINDS)
        outcome = run(design, number, [Fault(kind)])
    assert _struck(outcome) or not outcome.transfers, "no fault struck"
    return design, outcome


def _struck(outcome: Outcome) -> int:
    return sum(outcome.counted[kind] for kind in KINDS)


def run(design: Design, seed: int, faults: list[Fault]) -> Outcome:
    """Run a world and examine everything."""
    todo = [lambda process, mine=mine: _run(process, mine, design) for mine in design.programs]
    job = failing_world(
        todo,
        design.rails,
        faults,
        seed=seed,
        parameters=design.parameters,
        immortal=design.immortal,
        lossy=design.kind == "all rails",
        strict=False,  # one may go on over fewer transfers than the dry run had
    )
    whole = all(found is not None for found in job.results)
    for rank, found in enumerate(job.results):
        if whole:
            compare(rank, design.programs, found)
    if design.kind != "all rails":
        _compare_flow(job.processes)
    outcome = Outcome(job.net.counts[""])
    outcome.counted.update(job.net.delivered)
    outcome.counted["all rails gone"] += not whole
    for process in job.processes:
        outcome.counted.update(process.pml.counters)
        outcome.counted["rail events"] += len(process.context.rail_events)
    for name, _, _ in job.net.log:
        outcome.counted[f"> {name}"] += 1
    sent = [action for program in design.programs for action in program if isinstance(action, Sent)]
    outcome.counted["messages"] += len(sent)
    outcome.counted["bytes"] += sum(action.size for action in sent)
    return outcome


def _compare_flow(processes: list[Any]) -> None:
    """Every message counts for its window and its credit once, however often it went."""
    for process in processes:
        for proc, there in process.pml.flow.peers.items():
            rank = process.context.rank
            flows = processes[proc.rank].pml.flow.peers.items()
            here = next((flow for peer, flow in flows if peer.rank == rank), None)
            counted = (here.taken, here.back) if here is not None else (0, 0)
            assert (there.sent, there.spent) == counted, f"rank {rank} to {proc}: {counted}"


def _run(process: Any, mine: list[Sent | Posted], design: Design) -> Any:
    """A rank's program; None where all rails are gone, which only some worlds may say."""
    try:
        return run_rank(process, mine, design.first)
    except MPIError as error:
        if design.kind != "all rails" or error.code != ERR_PROC_FAILED:
            raise
    except AssertionError:  # the program looked at a receive that had failed
        if design.kind != "all rails" or not process.pml.lost:
            raise
    return None
