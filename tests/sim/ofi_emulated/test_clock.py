"""What the device's clock makes of messages between two hosts, against published figures.

openucx/ucx, src/uct/ib/base/ib_iface.c: 600 ns from end to end over EDR InfiniBand of 100 Gbit/s.
"""

from __future__ import annotations

from typing import Any

import pytest
from ompy.net.base import Link
from ompy.net.virtual.virtual_network import Rail

from tests.support.fabric_job import Rank, run

OWN_LINK = Rail("rail0", jitter=0, chosen=False)
PUBLISHED = 600  # ns
TURNS = 20


def half_round_trip(size: int = 8, carries: Link | None = None, **settings: Any) -> float:
    """Nanoseconds from a send to its receive, over many."""

    def program(rank: Rank) -> float:
        rank.nic.carries = carries
        side = rank.side()

        def received() -> int:
            return sum(one.context != "sent" for one in side.done)

        for number in range(2 + TURNS):
            side.post(lambda number=number: side.endpoint.receive(view, None, number))  # type: ignore[misc]
        for _ in range(2):  # both ways are connected by it
            side.post(lambda: side.endpoint.inject(side.memory[:1], side.to))
            side.wait(lambda: bool(side.done), "the first message")
        side.wait(lambda: len(side.done) == 2, "the first messages")
        rank.engine.wait_until(lambda: False, 1_000_000)
        rank.engine.wait_until(lambda: False, 1_000_000 - rank.engine.now() % 1_000_000)
        begun = rank.engine.now()
        for turn in range(TURNS):
            if rank.rank == turn % 2:
                side.post(lambda: side.endpoint.send(view, None, side.to, "sent"))
            else:
                expected = 2 + turn // 2 + 1
                side.wait(lambda expected=expected: received() >= expected, turn)  # type: ignore[misc]
        took = (rank.engine.now() - begun) / TURNS
        rank.engine.wait_until(lambda: False, 1_000_000)
        side.close()
        return took

    view = memoryview(bytearray(size))
    job, _ = run(program, rail=OWN_LINK, **settings)
    return max(job.results)  # type: ignore[attr-defined,no-any-return]


def test_small_messages_take_what_was_published() -> None:
    small, fetched = half_round_trip(), half_round_trip(inject_size=4)
    assert PUBLISHED <= small <= 1.2 * PUBLISHED, "and the polls"
    assert 300 < fetched - small < 400, "entry and data are fetched over PCIe"


@pytest.mark.parametrize("size", [1 << 18, 1 << 20])
def test_large_ones_come_at_the_rate_of_the_link(size: int) -> None:
    assert 0.75 < 8_000 * size / half_round_trip(size) / 100_000 < 1


def test_who_carries_another_nic_has_its_link_and_no_clock() -> None:
    link = Link(5_000, 100_000)
    assert 5_000 <= half_round_trip(carries=link) < 5_200
    assert half_round_trip(carries=link) == half_round_trip(carries=link, inject_size=4)


def test_without_the_clock_only_the_rail_takes_time() -> None:
    assert half_round_trip(clock=False) == half_round_trip(clock=False, inject_size=4)
    assert half_round_trip(clock=False) >= OWN_LINK.latency
