"""How a rank leaves: what it has accepted is delivered, and nobody waits for ever.

Two ranks that part over a lossy wire can never both be sure of the last word. What each rule of
`finalize` is for is tested here by taking away the datagrams it should do without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from ompy.data.errors import MPIError
from ompy.engine.virtual_engine import RankFailed
from ompy.frameworks.context import RankContext
from ompy.frameworks.datagrams import RANK_SIZE, SEAL_SIZE
from ompy.net.base import Address, Datagram, Middleware
from ompy.net.faults.middleware import DatagramFault, Drop, Duplicate, FaultCounter, Reorder
from ompy.runtime.ranks.process import RankProcess
from worlds import MS, SECOND, Talk, job, pattern

from ompy_btl_udplite.component import ACK, BYE, HEADER, PAUSE

LINGER = 20 * PAUSE


class Lose(DatagramFault):
    """Loses the datagrams with certain tags."""

    kind = "lose"

    def __init__(
        self, context: RankContext, counter: FaultCounter, doomed: Callable[[int], bool]
    ) -> None:
        super().__init__(context.engine, counter)
        self.doomed = doomed

    def transmit(self, inner: Datagram, packet: memoryview, address: Address) -> bool:
        tag, _, _ = HEADER.unpack_from(packet, SEAL_SIZE + RANK_SIZE)
        if self.doomed(tag):
            self.delivered(tag=tag)
            return True
        return inner.send(packet, address)


@pytest.mark.parametrize("seed", range(8))
def test_parting_over_a_lossy_wire(seed: int) -> None:
    """Three ranks stop at different times; none is held up for long, nothing is lost."""
    counter = FaultCounter()

    def faults(context: RankContext) -> Sequence[Middleware]:
        return (
            Drop(context.engine, counter, rate=0.3),
            Duplicate(context.engine, counter, rate=0.3),
            Reorder(context.engine, counter, rate=0.3, delay=40 * MS),
        )

    def program(process: RankProcess) -> int:
        talk = Talk(process)
        rank, size = process.context.rank, process.context.size
        talk.engine.spend(talk.engine.random.randrange(200 * MS))
        sends = [talk.send(pattern(30_000, rank), peer) for peer in range(size)]
        for peer in range(size):
            assert talk.receive(30_000, peer) == pattern(30_000, peer)
        talk.wait(*sends)
        talk.engine.spend(talk.engine.random.randrange(200 * MS))
        return talk.engine.now()

    made = job(3, seed=seed, faults=faults)
    last = max(made.run(program))
    assert made.scheduler.time - last < 3 * SECOND
    counter.require("drop", "duplicate", "reorder")


def test_what_was_sent_last_is_delivered_to_a_peer_that_computes() -> None:
    def sender(process: RankProcess) -> None:
        talk = Talk(process)
        for number in range(4):
            talk.wait(talk.send(pattern(300, number), 1))

    def busy(process: RankProcess) -> int:
        talk = Talk(process)
        talk.engine.spend(30 * SECOND)
        for number in range(4):
            assert talk.receive(300, 0) == pattern(300, number)
        return talk.engine.now()

    counter = FaultCounter()

    def faults(context: RankContext) -> Sequence[Middleware]:
        return [Drop(context.engine, counter, rate=0.3)]

    for seed in range(5):
        made = job(2, seed=seed, faults=faults)
        assert made.run([sender, busy])[1] < 31 * SECOND
    counter.require("drop")


def test_a_bye_acknowledges_everything() -> None:
    """Not one acknowledgement of rank 0 arrives; rank 1 can leave when it is told good-bye."""
    counter = FaultCounter()

    def faults(context: RankContext) -> Sequence[Middleware]:
        return [Lose(context, counter, lambda tag: tag == ACK)] if context.rank == 0 else []

    def receiver(process: RankProcess) -> None:
        Talk(process).receive(300, 1)

    def sender(process: RankProcess) -> None:
        Talk(process).send(pattern(300, 1), 0)

    made = job(2, faults=faults)
    made.run([receiver, sender])
    assert made.scheduler.time < 2 * SECOND
    counter.require("lose")


def test_a_rank_whose_bye_is_not_answered_lingers_and_leaves() -> None:
    """Rank 1 has what it was sent and computes: rank 0 does not wait for it."""

    def sender(process: RankProcess) -> None:
        talk = Talk(process)
        talk.wait(talk.send(b"x", 1))
        talk.receive(1, 1)
        process.context.leaves = False  # nor does it owe an answer to the PML's last word
        process.finalize()
        assert LINGER <= talk.engine.now() < LINGER + SECOND

    def busy(process: RankProcess) -> None:
        talk = Talk(process)
        talk.receive(1, 0)
        talk.wait(talk.send(b"y", 0))
        talk.engine.spend(60 * SECOND)

    made = job(2)
    made.run([sender, busy])
    assert made.scheduler.time < 61 * SECOND


def test_the_wire_up_has_the_last_word() -> None:
    """Rank 0 has left unheard, and the last answer is lost: the agents say when it is gone."""
    counter = FaultCounter()
    left: list[int] = []

    def faults(context: RankContext) -> Sequence[Middleware]:
        return [Lose(context, counter, lambda tag: tag in (ACK, BYE))] if not context.rank else []

    def receiver(process: RankProcess) -> None:
        Talk(process).receive(300, 1)
        process.finalize()
        left.append(process.context.engine.now())
        process.context.engine.spend(20 * SECOND)  # MPI is finalized, the process goes on

    def sender(process: RankProcess) -> None:
        talk = Talk(process)
        talk.send(pattern(300, 1), 0)
        process.finalize()
        assert talk.engine.now() >= 20 * SECOND, "it cannot have known before"

    made = job(2, faults=faults)
    made.run([receiver, sender])
    assert left[0] < 2 * SECOND
    assert made.scheduler.time < 22 * SECOND
    counter.require("lose")


@pytest.mark.parametrize("unheard", [0, 10])
def test_messages_to_who_has_left_are_refused(unheard: int) -> None:
    """Also when the window is full of what the peer left without."""
    counter = FaultCounter()
    silent: list[int] = []

    def faults(context: RankContext) -> Sequence[Middleware]:
        return [Lose(context, counter, lambda tag: bool(silent) and tag != BYE)]

    def first(process: RankProcess) -> None:
        talk = Talk(process)
        talk.receive(1, 1)
        talk.engine.spend(MS)

    def second(process: RankProcess) -> None:
        talk = Talk(process)
        talk.wait(talk.send(b"x", 0))
        talk.engine.wait_until(lambda: not talk.module().waiting())
        silent.extend(range(unheard))
        for _ in range(unheard):
            talk.send(b"never to be received", 0)
        assert len(talk.module().peers[0].kept) == min(unheard, talk.module().window)
        talk.engine.wait_until(lambda: talk.module().peers[0].left)
        talk.wait(talk.send(b"y", 0))

    with pytest.raises(RankFailed, match="BTL udplite no longer reaches rank 0") as problem:
        job(2, faults=faults).run([first, second])
    assert problem.value.rank == 1
    assert isinstance(problem.value.__cause__, MPIError)


def test_nothing_is_left_behind() -> None:
    counter = FaultCounter()

    def faults(context: RankContext) -> Sequence[Middleware]:
        return [
            Duplicate(context.engine, counter, rate=0.5),
            Reorder(context.engine, counter, rate=0.5, delay=MS),
        ]

    def program(process: RankProcess) -> None:
        talk = Talk(process)
        other = 1 - process.context.rank
        for number in range(30):
            talk.wait(talk.send(pattern(300, number), other))
            assert talk.receive(300, other) == pattern(300, number)
        module = talk.module()
        process.finalize()
        (peer,) = module.peers.values()
        assert not peer.early
        assert {tag for tag, _ in peer.kept.values()} <= {BYE}, "all but BYE is answered"
        assert not module.timer.pending
        assert module.poll() == 0
        assert module.arm()

    job(2, faults=faults).run(program)
    counter.require("duplicate", "reorder")
