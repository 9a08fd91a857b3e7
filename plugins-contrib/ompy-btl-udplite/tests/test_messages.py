"""Messages over udplite in the virtual world: lossy wires, busy peers, other BTLs beside it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ompy.data.errors import MPIError
from ompy.engine.virtual_engine import Deadlock, RankFailed
from ompy.frameworks.context import RankContext
from ompy.net.base import Middleware
from ompy.net.faults.middleware import BlackHole, Corrupt, Drop, Duplicate, FaultCounter, Reorder
from ompy.runtime.ranks.process import RankProcess
from worlds import MS, SECOND, Talk, job, pattern

SIZES = (0, 1, 200, 16_000, 16_384, 16_385, 100_000, 1_000_003)
KINDS = ("drop", "duplicate", "reorder", "corrupt")


def everybody_to_everybody(process: RankProcess) -> int:
    """Every size to every rank at once; returns how many arrived as they were sent."""
    talk = Talk(process)
    ranks = range(process.context.size)
    own = process.context.rank
    sends = [
        talk.send(pattern(size, own + peer), peer, tag)
        for tag, size in enumerate(SIZES)
        for peer in ranks
    ]
    arrived = 0
    for tag, size in reversed(list(enumerate(SIZES))):
        for peer in ranks:
            arrived += talk.receive(size, peer, tag) == pattern(size, own + peer)
    talk.wait(*sends)
    return arrived


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rate", [0.02, 0.2])
def test_all_arrives_whatever_the_wire_does(seed: int, rate: float) -> None:
    counter = FaultCounter()

    def faults(context: RankContext) -> Sequence[Middleware]:
        engine = context.engine
        return (
            Drop(engine, counter, rate=rate),
            Duplicate(engine, counter, rate=rate),
            Reorder(engine, counter, rate=rate, delay=MS),
            Corrupt(engine, counter, rate=rate),
        )

    assert job(3, seed=seed, faults=faults).run(everybody_to_everybody) == [3 * len(SIZES)] * 3
    counter.require(*KINDS)


def test_lost_acknowledgements_are_given_again() -> None:
    """In one direction only, so that no fragment back tells what has arrived."""
    counter = FaultCounter()

    def faults(context: RankContext) -> Sequence[Middleware]:
        return [Drop(context.engine, counter, rate=0.5)] if context.rank == 1 else []

    def sender(process: RankProcess) -> None:
        talk = Talk(process)
        talk.wait(*[talk.send(pattern(100, number), 1) for number in range(100)])

    def receiver(process: RankProcess) -> None:
        talk = Talk(process)
        for number in range(100):
            assert talk.receive(100, 0) == pattern(100, number)

    job(2, faults=faults).run([sender, receiver])
    counter.require("drop")


@pytest.mark.parametrize("window", [1, 2, 30])
def test_any_window(window: int) -> None:
    made = job(2, btl_udplite_window=window)
    assert made.run(everybody_to_everybody) == [2 * len(SIZES)] * 2


def test_a_busy_peer_is_not_a_dead_rail() -> None:
    """It computes for a minute; everything is delivered then, and nobody has complained."""

    def sender(process: RankProcess) -> int:
        talk = Talk(process)
        sends = [talk.send(pattern(50_000, number), 1) for number in range(20)]
        talk.wait(*sends)
        return talk.engine.now()

    def busy(process: RankProcess) -> None:
        talk = Talk(process)
        talk.engine.spend(60 * SECOND)
        for number in range(20):
            assert talk.receive(50_000, 0) == pattern(50_000, number)

    done, _ = job(2).run([sender, busy])
    assert done > 60 * SECOND


def test_small_messages_to_a_busy_peer_are_sent_and_done_with() -> None:
    def sender(process: RankProcess) -> int:
        talk = Talk(process)
        talk.wait(*[talk.send(b"x", 1) for _ in range(4)])
        return talk.engine.now()

    def busy(process: RankProcess) -> None:
        talk = Talk(process)
        talk.engine.spend(SECOND)
        assert [talk.receive(1, 0) for _ in range(4)] == [b"x"] * 4

    done, _ = job(2).run([sender, busy])
    assert done < MS


def test_an_outage_in_the_middle() -> None:
    counter = FaultCounter()

    def faults(context: RankContext) -> Sequence[Middleware]:
        hole = BlackHole(context.engine, counter, gives_up=SECOND)
        context.engine.scheduler.after(MS // 10, hole.open)
        context.engine.scheduler.after(3 * SECOND, hole.close)
        return [hole]

    made = job(2, faults=faults)
    assert made.run(everybody_to_everybody) == [2 * len(SIZES)] * 2
    assert made.scheduler.time > 3 * SECOND
    counter.require("black hole")


def test_who_waits_for_nothing_is_left_asleep() -> None:
    """No timer goes on when all is acknowledged: a world that hangs is seen to hang."""

    def program(process: RankProcess) -> None:
        talk = Talk(process)
        other = 1 - process.context.rank
        talk.wait(talk.send(b"hello", other))
        talk.receive(5, other)
        talk.receive(5, other)  # never sent

    with pytest.raises(Deadlock):
        job(2, bounded=False).run(program)


def test_nobody_falls_asleep_over_a_datagram() -> None:
    def sender(process: RankProcess) -> None:
        Talk(process).send(b"x", 1)

    def receiver(process: RankProcess) -> None:
        talk = Talk(process)
        assert talk.module().arm()
        talk.engine.spend(MS)
        assert not talk.module().arm()
        talk.receive(1, 0)
        assert talk.module().arm()

    job(2).run([sender, receiver])


@pytest.mark.parametrize(
    ("btl", "hosts", "used"),
    [
        ("self,sm,tcp,udplite", [0, 0], "sm"),
        ("self,sm,tcp,udplite", [0, 1], "tcp"),
        ("^tcp", [0, 1], "udplite"),
        ("^tcp", [0, 0], "sm"),
        ("self,udplite", [0, 0], "udplite"),
    ],
)
def test_it_is_used_where_nothing_better_reaches(btl: str, hosts: list[int], used: str) -> None:
    made = job(2, btl=btl, hosts=hosts)
    made.run(everybody_to_everybody, trace=True)
    added = [dict(e.fields) for e in made.events() if (e.layer, e.name) == ("bml.r2", "ADD_PROC")]
    assert {fields["rails"] for fields in added if fields["peer"] == 1} == {used, "self"}


def test_limits_that_no_datagram_holds() -> None:
    def program(process: RankProcess) -> None:
        if process.context.rank == 0:
            Talk(process).send(bytes(100_000), 1)

    made = job(2, btl_udplite_eager_limit=200_000, btl_udplite_max_send_size=200_000)
    with pytest.raises(RankFailed, match="do not fit a datagram") as problem:
        made.run(program)
    assert isinstance(problem.value.__cause__, MPIError)
