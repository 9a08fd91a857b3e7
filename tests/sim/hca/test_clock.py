"""What the adapter's clock makes of messages between two hosts, against published figures.

openucx/ucx, src/uct/ib/base/ib_iface.c: 700 ns from end to end over FDR InfiniBand, whose four
lanes carry 54.5 Gbit/s; Neugebauer et al. 2018: 50 Gbit/s over PCIe 3.0 x8.
"""

from __future__ import annotations

import pytest
from ompy.frameworks.nic.verbs import Opcode
from ompy.net.virtual.virtual_network import Rail

from tests.support.hca_job import Rank, run
from tests.support.hca_pair import send

OWN_LINK = Rail("rail0", jitter=0, mtu=9_000, chosen=False)
PUBLISHED = 700  # ns
ROUNDS = 20


def half_round_trip(inline: bool, **settings: int) -> float:
    """Nanoseconds from a send of 8 bytes to its receive, over many."""

    def program(rank: Rank) -> float:
        (pair,) = rank.connect()
        end = rank.end
        for _ in range(ROUNDS):
            pair.post_receive(end.span(64, 8), "receive")
        rank.context.wireup.fence()
        rank.wait(lambda: False, 0.001)  # the memory is registered by now
        begun = rank.engine.now()
        for turn in range(ROUNDS):
            if rank.context.rank == turn % 2:
                pair.post_send(send(end, 0, 8, inline=inline))
            else:
                expected = turn // 2 + 1
                rank.wait(lambda expected=expected: received(rank) >= expected)
        return (rank.engine.now() - begun) / ROUNDS

    def received(rank: Rank) -> int:
        return sum(one.opcode is Opcode.RECEIVE for one in rank.end.done)

    job, _ = run(program, rail=OWN_LINK, **settings)
    return max(job.results)  # type: ignore[attr-defined,no-any-return]


def bandwidth(opcode: Opcode) -> float:
    """Mbit/s of 1 MiB in pieces of 64 KiB."""
    size, count = 1 << 16, 16
    over: list[int] = []

    def program(rank: Rank) -> float:
        (pair,) = rank.connect()
        rank.wait(lambda: False, 0.001)
        begun = rank.engine.now()
        if rank.context.rank == 0:
            for number in range(count):
                pair.post_send(rank.remote(opcode, 0, size, 0, context=number))
            rank.wait(lambda: len(rank.end.done) == count)
            over.append(rank.engine.now() - begun)
        rank.wait(lambda: bool(over))
        return size * count * 8_000 / over[0]

    job, _ = run(program, rail=OWN_LINK)
    return max(job.results)  # type: ignore[attr-defined,no-any-return]


def test_small_messages_take_what_was_published() -> None:
    inline, fetched = half_round_trip(True), half_round_trip(False)
    assert PUBLISHED <= inline <= 1.15 * PUBLISHED, "and the polls"
    assert 300 < fetched - inline < 400, "entry and data are fetched over PCIe"


@pytest.mark.parametrize("opcode", [Opcode.RDMA_WRITE, Opcode.RDMA_READ])
def test_large_ones_are_as_fast_as_the_bus(opcode: Opcode) -> None:
    assert 35_000 < bandwidth(opcode) < 50_000


def test_without_the_clock_only_the_rail_takes_time() -> None:
    assert half_round_trip(False, clock=False) == half_round_trip(True, clock=False)
    assert half_round_trip(True, clock=False) > OWN_LINK.latency
