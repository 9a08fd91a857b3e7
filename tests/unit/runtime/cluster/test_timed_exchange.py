"""What messages cost: LogGP to the nanosecond, matching in time, links that are shared."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import count

import pytest
from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.runtime.cluster.model import CROSSINGS, Cluster, MessageCosts, Way
from ompy.runtime.cluster.timed_exchange import TimedExchange
from ompy.runtime.cluster.topology import Switch

LATENCY, SPENT, GAP, LARGE = 1000, 50, 20, 10_000
SMALL = MessageCosts(0, LATENCY, SPENT, GAP, 0.5, False)
WHOLE = MessageCosts(LARGE, 3 * LATENCY, SPENT, GAP, 1.0, True)
CONTEXT = 0


class World:
    """A clock, and ranks that do as they are told."""

    def __init__(
        self,
        hosts: Sequence[int] = (0, 1),
        *,
        link: float = 8.0,
        rank_bandwidth: float = 0.0,
        whole: MessageCosts = WHOLE,
    ) -> None:
        way = Way((SMALL, whole), rank_bandwidth)
        cluster = Cluster("test", 8, 0, Switch(8), 10, link, way, way, 8.0)
        self.time = 0
        self._calls: list[tuple[int, int, Callable[[], object]]] = []
        self._number = count(1)
        self.woken: list[tuple[int, int]] = []
        self.exchange = TimedExchange(cluster, hosts, self, self._wake)

    def after(self, delay: int, callback: Callable[[], object]) -> None:
        heapq.heappush(self._calls, (self.time + delay, next(self._number), callback))

    def _wake(self, rank: int) -> None:
        self.woken.append((self.time, rank))

    def run_to(self, end: int = 1 << 60) -> None:
        while self._calls and self._calls[0][0] <= end:
            self.time, _, callback = heapq.heappop(self._calls)
            callback()
        if end < 1 << 60:
            self.time = end

    def send(self, rank: int, to: int, data: bytes, *, tag: int = 0, synchronous=False) -> int:
        """As a rank whose overhead has been spent."""
        number = next(self._number)
        waited = synchronous or self.exchange.costs(rank, to, len(data)).rendezvous
        self.exchange.send_message(
            (rank, number), (CONTEXT, to), rank, tag, data, waited=waited, synchronous=synchronous
        )
        return number

    def receive(self, rank: int, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> int:
        number = next(self._number)
        self.exchange.post_receive((rank, number), CONTEXT, source, tag)
        return number


HOPS = 2 * 10  # ns: into the switch and out of it


@pytest.mark.parametrize(("size", "moves"), [(0, 0), (1, 0), (2, 2), (1001, 2000)])
def test_a_message_takes_latency_overhead_and_gap_per_byte(size: int, moves: int) -> None:
    world = World()
    number = world.receive(1)
    world.exchange.begin_wait(1, [number])
    world.send(0, 1, bytes(size))
    world.run_to()
    assert world.woken == [(moves + LATENCY + HOPS + SPENT, 1)]
    assert world.exchange.news(1) == [("done", number, 0, 0, bytes(size))]


def test_within_a_host_there_are_no_hops() -> None:
    world = World([0, 0])
    world.exchange.begin_wait(1, [world.receive(1)])
    world.send(0, 1, b"x")
    world.run_to()
    assert world.woken == [(LATENCY + SPENT, 1)]
    assert world.exchange.counts == {"memory": [1, 1], "network": [0, 0]}


def test_a_rendezvous_waits_for_its_receive_and_its_sender_for_the_bytes() -> None:
    world = World()
    number = world.send(0, 1, bytes(LARGE))
    world.exchange.begin_wait(0, [number])
    world.run_to(20_000)
    assert world.woken == []
    world.exchange.begin_wait(1, [world.receive(1)])
    world.run_to()
    moved = 20_000 + HOPS + LARGE - 1  # the sender has had to hear that it is to send them
    # and that they have come: the receiver hears last that this was all
    # the envelope has taken LATENCY of 3 LATENCY already
    assert world.woken == [(moved + 2 * HOPS, 0), (moved + 2 * LATENCY + 3 * HOPS + SPENT, 1)]


def test_a_rendezvous_that_is_awaited_takes_what_its_sizes_say() -> None:
    world = World()
    world.exchange.begin_wait(1, [world.receive(1)])
    world.send(0, 1, bytes(LARGE))
    world.run_to()
    assert world.woken == [(LARGE - 1 + 3 * LATENCY + CROSSINGS * HOPS + SPENT, 1)]


def test_a_rendezvous_may_cross_the_links_less_often() -> None:
    world = World(whole=WHOLE._replace(crossings=3))
    world.exchange.begin_wait(0, [world.send(0, 1, bytes(LARGE))])
    world.exchange.begin_wait(1, [world.receive(1)])
    world.run_to()
    left = LATENCY + 2 * HOPS + LARGE - 1
    assert world.woken == [(left, 0), (left + 2 * LATENCY + HOPS + SPENT, 1)]


def test_a_synchronous_send_ends_when_it_is_matched_and_that_is_known() -> None:
    world = World()
    world.exchange.begin_wait(0, [world.send(0, 1, b"x", synchronous=True)])
    world.run_to(5000)
    world.receive(1)
    world.run_to()
    assert world.woken == [(5000 + LATENCY + HOPS, 0)]


def arrivals(world: World, *messages: tuple[int, int, int]) -> list[int]:
    """When each message (from, to, size) is received, without overheads."""
    for rank, to, _ in messages:
        world.exchange.begin_wait(to, [world.receive(to, rank)], others=True)
    for rank, to, size in messages:
        world.send(rank, to, bytes(size))
    world.run_to()
    return [time - LATENCY - HOPS for time, _ in world.woken]


def test_two_messages_over_one_link_take_twice_as_long() -> None:
    # ranks 0 and 1 on one host, their receivers on two others: the host's link upwards is shared
    alone = arrivals(World([0, 0, 1, 2], link=0.5), (0, 2, 2001))
    both = arrivals(World([0, 0, 1, 2], link=0.5), (0, 2, 2001), (1, 3, 2001))
    assert alone == [4000 + SPENT]
    assert both == [8000 + SPENT, 8000 + SPENT]


def test_a_rank_receives_no_faster_than_its_port() -> None:
    # three senders of 0.5 bytes per ns each, and a port of 1
    took = arrivals(World([0, 1, 2, 3]), (0, 3, 1001), (1, 3, 1001), (2, 3, 1001))
    assert took == [3000 + SPENT, 3000 + 2 * SPENT, 3000 + 3 * SPENT]


def test_both_directions_share_what_a_rank_can_move() -> None:
    both = arrivals(World(rank_bandwidth=0.5), (0, 1, 1001), (1, 0, 1001))
    assert both == [4000 + SPENT, 4000 + SPENT]
    assert arrivals(World(), (0, 1, 1001), (1, 0, 1001)) == [2000 + SPENT, 2000 + SPENT]


def test_messages_leave_a_gap_apart() -> None:
    world = World()
    wanted = [world.receive(1) for _ in range(3)]
    world.exchange.begin_wait(1, wanted)
    for _ in range(3):
        world.send(0, 1, b"x")
    world.run_to()
    first = LATENCY + HOPS + SPENT
    assert world.woken == [(first + at * SPENT, 1) for at in range(3)]  # overhead above gap
    assert [news[1] for news in world.exchange.news(1)] == wanted


def test_messages_of_one_sender_do_not_overtake() -> None:
    world = World()
    first, second = world.receive(1), world.receive(1)
    world.send(0, 1, bytes(5001), tag=1)  # takes 10000 ns
    world.send(0, 1, b"", tag=2)
    world.exchange.begin_wait(1, [second])
    world.run_to()
    assert [news[1:4] for news in world.exchange.news(1)] == [(first, 0, 1), (second, 0, 2)]


def test_what_comes_first_is_received_first() -> None:
    world = World([0, 1, 2])
    world.send(0, 2, bytes(4001))
    world.send(1, 2, bytes(1))
    number = world.receive(2)
    world.exchange.begin_wait(2, [number])
    world.run_to(5000)
    assert world.exchange.news(2) == [("done", number, 1, 0, bytes(1))]


def test_a_busy_rank_is_told_with_its_next_poll() -> None:
    world = World()
    number = world.receive(1)
    world.send(0, 1, b"x")
    world.run_to()
    assert world.exchange.news(1) == []
    assert world.exchange.take_arrived(1) == SPENT
    assert world.exchange.news(1) == [("done", number, 0, 0, b"x")]


def test_internal_tags_are_not_for_wildcards() -> None:
    world = World()
    number = world.receive(1)
    world.send(0, 1, b"x", tag=-5)
    world.run_to()
    assert world.exchange.take_arrived(1) == 0
    assert world.exchange.cancel_receive((1, number))
    assert not world.exchange.cancel_receive((1, number))


def test_a_probe_leaves_a_message_or_takes_it() -> None:
    world = World()
    world.send(0, 1, b"abc", tag=3)
    world.run_to()
    find = world.exchange.find_message
    assert find(1, CONTEXT, ANY_SOURCE, 4, takes=False) is None
    found = find(1, CONTEXT, 0, 3, takes=False)
    assert found is not None
    assert found.data == b"abc"
    assert find(1, CONTEXT, 0, 3, takes=True) is found
    assert find(1, CONTEXT, 0, 3, takes=True) is None
    assert found.whole


def test_links_say_what_they_have_carried() -> None:
    world = World()
    world.receive(1)
    world.send(0, 1, bytes(101))
    world.run_to()
    loads = {name: carried for name, carried, _ in world.exchange.link_loads()}
    assert loads == {
        ("sends (network)", 0): 100,
        ("receives (network)", 1): 100,
        ("host", 0, "up"): 100,
        ("host", 1, "down"): 100,
    }
