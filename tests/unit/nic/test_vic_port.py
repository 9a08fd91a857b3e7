"""The receiver's port of an emulated VIC: senders that meet in front of it, and what it drops."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from ompy.engine.virtual_engine import Scheduler
from ompy.net.base import Link
from ompy.net.virtual.virtual_network import Fabric, Rail, VirtualNetwork
from ompy.net.virtual.virtual_port import Port
from ompy_components.nic.vic.timings import BUFFER, DEVICE, RATE

from tests.support.networks import simulated
from tests.unit.nic.test_vic import Card

PACKETS = 50  # of each sender
FULL = 1_472  # bytes
ON_THE_LINK = FULL * 8_000 // RATE


@dataclass
class Come:
    """What has become of the packets: when they were read, and how many the device dropped."""

    times: list[int] = field(default_factory=list)
    dropped: int = 0

    @property
    def apart(self) -> float:
        """Nanoseconds from one to the next."""
        return (self.times[-1] - self.times[0]) / (len(self.times) - 1)


def fan_in(senders: int, size: int, *, chosen: bool = False, **settings: int) -> Come:
    """Some send to one as fast as they can, over a device's own link without jitter."""
    scheduler = Scheduler(1)
    engines = [scheduler.engine() for _ in range(senders + 1)]
    rail = Rail("rail0", 10_000, 0, 10_000, chosen=chosen)
    fabric = Fabric(scheduler, [rail], list(range(senders + 1)))
    cards = [
        Card(VirtualNetwork(fabric, rank, engine), depth=512, **settings)
        for rank, engine in enumerate(engines)
    ]
    far, come, done = cards[0], Come(), [0]

    def send(rank: int) -> None:
        near = cards[rank]
        for number in range(PACKETS):
            near.pair.post_send(near.memory[:size], far.pair.address, number, more=True)
        near.pair.ring()
        engines[rank].wait_until(lambda: near.read() >= 0 and len(near.done) == PACKETS)
        engines[rank].spend(1_000_000)  # all that was sent is there, or lost
        near.pair.post_send(near.memory[:size], far.pair.address, "last")
        engines[rank].wait_until(lambda: near.read() >= 0 and len(near.done) == PACKETS + 1)

    def receive() -> None:
        far.buffers(512, FULL)

        def looked() -> bool:
            came = far.read()
            now = engines[0].now()
            come.times.extend(came * [now] if now < 1_000_000 else [])
            done[0] += came if now >= 1_000_000 else 0
            return done[0] == senders

        engines[0].wait_until(looked)
        come.dropped = far.pair.dropped

    scheduler.run_engines(
        [receive, *(lambda rank=rank: send(rank) for rank in range(1, senders + 1))]
    )
    return come


def test_one_sender_finds_the_port_free() -> None:
    alone, without = fan_in(1, FULL), fan_in(1, FULL, link_buffer=0)
    assert alone == without
    assert alone.apart == pytest.approx(ON_THE_LINK, rel=0.03)


def test_several_senders_share_it() -> None:
    """Each has a link of its own; there is one at the other end."""
    shared, free = fan_in(3, FULL), fan_in(3, FULL, link_buffer=0)
    assert shared.apart == pytest.approx(ON_THE_LINK, rel=0.03)
    assert free.apart == pytest.approx(ON_THE_LINK / 3, rel=0.1)
    assert len(shared.times) == len(free.times) == 3 * PACKETS
    assert shared.dropped == free.dropped == 0


def test_short_packets_are_bound_by_their_number() -> None:
    assert fan_in(3, 8).apart == pytest.approx(DEVICE, rel=0.05)
    assert fan_in(3, 8, link_packet_ns=0).apart < DEVICE / 2


def test_what_finds_no_room_is_dropped_and_counted() -> None:
    come = fan_in(3, FULL, link_buffer=10 * FULL)
    assert come.dropped == 3 * PACKETS - len(come.times)
    # of three that come at once, one passes and two wait, until there is no room
    assert PACKETS < len(come.times) < PACKETS + 20
    assert come.apart == pytest.approx(ON_THE_LINK, rel=0.03)


def test_where_somebody_has_chosen_the_rail_there_is_no_port() -> None:
    come = fan_in(3, FULL, chosen=True, link_buffer=1)
    assert (len(come.times), come.dropped) == (3 * PACKETS, 0)


def test_a_packet_passes_while_it_arrives() -> None:
    port = Port(Rail("rail0", bandwidth=RATE, buffer=BUFFER, per_packet=DEVICE))
    assert port.passed(10_000, FULL) == 10_000
    assert port.passed(10_000, FULL) == 10_000 + ON_THE_LINK
    assert port.passed(10_000 + 2 * ON_THE_LINK, FULL) == 10_000 + 2 * ON_THE_LINK
    assert port.passed(10_000 + 2 * ON_THE_LINK, 0) == 10_000 + 2 * ON_THE_LINK + DEVICE


def test_a_rank_in_a_process_of_its_own_is_told() -> None:
    """With the next packet that it takes."""
    scheduler = Scheduler(1)
    fabric = Fabric(scheduler, [Rail("rail0", chosen=False)], [0, 1, 2])
    engines = [scheduler.engine() for _ in range(3)]
    link = Link(1_000, RATE, buffer=FULL, per_packet=DEVICE)
    far = simulated(fabric, 0, engines[0]).datagram("rail0/0", link=link)
    for rank in (1, 2):
        near = VirtualNetwork(fabric, rank, engines[rank]).datagram(f"rail0/{rank}", link=link)
        for _ in range(PACKETS):
            near.send(memoryview(bytes(FULL)), far.address)
    while (deadline := scheduler._events.next_deadline()) is not None:
        scheduler.time = deadline
        scheduler._events.run_due(deadline)
    assert far.overrun() == 0, "nothing has been taken yet"
    came = 0
    while far.receive_into(memoryview(bytearray(FULL))) is not None:
        came += 1
    assert far.overrun() == 2 * PACKETS - came > PACKETS / 2
