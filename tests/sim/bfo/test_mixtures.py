"""bfo over real BTLs whose rails break and are healed: each kind beside each other kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from ompy.frameworks.paths.rail_events import RailEvent
from ompy.frameworks.pml import STANDARD
from ompy.net.faults.fault_rules import NEVER, FaultRule
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.sim.p2p import programs
from tests.support.effort import THOROUGH
from tests.support.scripted_world import install
from tests.support.worlds import registry

MS = 1_000_000
SECOND = 1_000 * MS
RAILS = (Rail("first"), Rail("second"))
LASTS = 7 * SECOND // 2  # a rail that broke twice is held for longer
PAUSE = 20 * MS
SIZES = (8, 700, 9_000, 60_000)
KINDS = ("usnic", "openib", "tcp")
PAIRS = [(one, other) for one in KINDS for other in KINDS if "usnic" in (one, other)]
CUTS = {
    "link down": (FaultRule("link_down", ranks=(0,), since=SECOND // 10, until=SECOND),),
    "black hole": (FaultRule("black_hole", since=SECOND // 10, until=SECOND),),
    "one way": (FaultRule("black_hole", ranks=(0,), since=SECOND // 10, until=SECOND),),
    "twice": (
        FaultRule("black_hole", since=SECOND // 10, until=SECOND),
        FaultRule("link_down", ranks=(1,), since=3 * SECOND // 2, until=2 * SECOND),
    ),
}


def settings_of(pair: Sequence[str]) -> dict[str, object]:
    """BTLs of one class, each with a rail of its own, or one with both."""
    found: dict[str, object] = {
        "pml": "bfo",
        "btl": ",".join(["self", *dict.fromkeys(pair)]),
        "nic_vic_mtu": 9000,  # fewer packets
    }
    for name in pair:
        found[f"btl_{name}_exclusivity"] = 1024
        found[f"btl_{name}_latency"] = 10
        found[f"btl_{name}_bandwidth"] = 1000
        found[f"btl_{name}_eager_limit"] = 8192
    if pair[0] != pair[1]:
        for name, rail in zip(pair, RAILS, strict=True):
            found[f"btl_{name}_if_include"] = rail.name
    return found


def traffic(process: Any) -> tuple[list[RailEvent], dict[str, int]]:
    """Messages both ways until the clock says so; each is looked at. What became of rails."""
    comm, pml = programs.world(process), process.pml
    engine, other = process.context.engine, 1 - comm.rank
    begun, turn = engine.now(), 0
    while True:
        last = comm.rank == 0 and engine.now() - begun > LASTS
        word = bytes([last]) if comm.rank == 0 else b"-"
        memory, room = programs.buffer(1)
        asked = pml.irecv(comm, room, other, 7)
        told = pml.isend(comm, programs.send(word), other, 7, STANDARD)
        size = SIZES[turn % len(SIZES)] + turn % 5
        data = programs.pattern(size, turn)
        incoming, place = programs.buffer(size)
        requests = [asked, told, pml.irecv(comm, place, other, 8)]
        requests.append(pml.isend(comm, programs.send(data), other, 8, STANDARD))
        for request in requests:
            pml.wait(comm, request)
        assert bytes(incoming) == data, turn
        turn += 1
        engine.wait_until(lambda: False, PAUSE)
        if last or bytes(memory) == b"\1":
            break
    return list(process.context.rail_events), dict(pml.counters)


def run(pair: Sequence[str], rules: Sequence[FaultRule], seed: int = 0) -> list[Any]:
    """A world of two ranks on two hosts whose first rail has these faults."""
    return run_with(settings_of(pair), rules, seed)


def run_with(
    settings: Mapping[str, object], rules: Sequence[FaultRule], seed: int = 0
) -> list[Any]:
    """The same with these parameters."""
    job = VirtualJob(2, registry(**settings), seed=seed, rails=RAILS, hosts=[0, 1])
    rules = [rule._replace(rails=("first",)) for rule in rules]
    faults = install(job, rules)
    results = job.run(traffic)
    for counts in zip(*(one.delivered for one in faults), strict=True):
        assert sum(counts), "a fault never struck"
    return results


CELLS = [(pair, cut) for pair in PAIRS for cut in CUTS]


# in CI every kind of cut and every pair, each once or twice
@pytest.mark.parametrize(("pair", "cut"), CELLS if THOROUGH else CELLS[::5])
def test_a_rail_that_breaks_and_is_healed(pair: tuple[str, str], cut: str) -> None:
    """Every message arrives whole; each rank says which rail broke, and when it was healed."""
    rules = CUTS[cut]
    for events, _ in run(pair, rules):
        assert events, "nobody noticed"
        assert len(events) == len(rules), events
        for event in events:
            assert event.rail.startswith(f"{pair[0]} first"), event
            assert event.healed > event.noticed, f"never healed: {event}"


@pytest.mark.parametrize("better", ["openib", "usnic"])
def test_the_other_end_is_told_over_a_rail_of_another_kind(better: str) -> None:
    """A port goes down: its own rank knows at once, and the other one as soon as it is told."""
    events = [events[0] for events, _ in run((better, "tcp"), CUTS["link down"])]
    assert abs(events[0].noticed - events[1].noticed) < MS, events


STAND_INS = [("openib", "black hole"), ("usnic", "link down")]
STAND_INS += [("openib", "link down"), ("usnic", "black hole")] if THOROUGH else []


@pytest.mark.parametrize(("better", "cut"), STAND_INS)
def test_a_btl_of_a_lower_class_stands_in(better: str, cut: str) -> None:
    """As they are by default, tcp is not used beside these; when they are gone it is."""
    settings = {
        "pml": "bfo",
        "btl": f"self,{better},tcp",
        f"btl_{better}_if_include": "first",
        "btl_tcp_if_include": "second",
        "nic_vic_mtu": 9000,
    }
    whole = [rule._replace(until=NEVER) for rule in CUTS[cut]]
    for rules, healed in ((whole, False), (CUTS[cut], True)):
        for events, _ in run_with(settings, rules):
            (event,) = events
            assert event.rail.startswith(f"{better} first"), event
            assert bool(event.healed) is healed, event
