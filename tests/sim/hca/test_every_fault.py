"""Every single fault, and every pair of losses, on every packet of short exchanges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations

import pytest
from ompy.engine.base import Engine
from ompy.frameworks.nic.verbs import Opcode, SendWork, State
from ompy.net.base import Address, Datagram
from ompy.net.faults.middleware import DatagramFault, FaultCounter
from ompy.net.seals.datagram_seal import DatagramSeal
from ompy.net.seals.replay import Taken
from ompy_components.nic.hca import device

from tests.support.hca_pair import TIMING, End, ends, join, remote, send, until
from tests.support.networks import World, two_networks

LATE = 300_000  # ns: later packets overtake it by far
KINDS = ("drop", "duplicate", "late duplicate", "delay", "corrupt")


class Strikes(DatagramFault):
    """Hits some packets by their number, counted over both sides.

    Attributes:
        sent: packets so far, of both.
    """

    kind = "strike"
    sent: list[int]

    def __init__(
        self, engine: Engine, counter: FaultCounter, plan: dict[int, str], sent: list[int]
    ) -> None:
        super().__init__(engine, counter)
        self.plan = plan
        self.sent = sent

    def transmit(self, inner: Datagram, packet: memoryview, address: Address) -> bool:
        what = self.plan.get(self.sent[0], "")
        self.sent[0] += 1
        if not what:
            return inner.send(packet, address)
        self.counter.delivered[what] += 1
        if what == "drop":
            return True
        if what == "corrupt":
            copy = bytearray(packet)
            copy[len(copy) * 2 // 3] ^= 4
            return inner.send(memoryview(copy), address)
        if what != "delay":
            inner.send(packet, address)
        if what == "duplicate":
            return inner.send(packet, address)
        self.engine.call_later(LATE, partial(inner.send, memoryview(bytes(packet)), address))
        return True


def small_sends(near: End, far: End) -> list[object]:
    for index in range(3):
        far.pairs[0].post_receive(far.span(100 * index, 100), index)
    for index in range(3):
        near.memory[index * 10 : index * 10 + 10] = bytes([65 + index]) * 10
        near.pairs[0].post_send(send(near, index * 10, 10, index))
    return [3, 3, lambda: [bytes(far.memory[at : at + 10]) for at in (0, 100, 200)]]


def a_long_send(near: End, far: End) -> list[object]:
    near.memory[:1500] = bytes(index % 251 for index in range(1500))
    far.pairs[0].post_receive(far.span(0, 2000), 0)
    near.pairs[0].post_send(send(near, 0, 1500))
    return [1, 1, lambda: bytes(far.memory[:2000])]


def a_write_and_a_read(near: End, far: End) -> list[object]:
    near.memory[:900] = bytes(index % 241 for index in range(900))
    near.pairs[0].post_send(remote(Opcode.RDMA_WRITE, near, 0, 600, far.region))
    near.pairs[0].post_send(remote(Opcode.RDMA_READ, near, 1000, 1000, far.region))
    near.pairs[0].post_send(remote(Opcode.RDMA_WRITE, near, 2000, 100, far.region))
    return [3, 0, lambda: (bytes(far.memory[:1000]), bytes(near.memory[:2400]))]


def atomics(near: End, far: End) -> list[object]:
    for index in range(5):
        work = remote(Opcode.FETCH_AND_ADD, near, 8 * index, 8, far.region, swap=index + 1)
        near.pairs[0].post_send(work)
    near.pairs[0].post_send(
        remote(Opcode.COMPARE_AND_SWAP, near, 40, 8, far.region, compare=15, swap=7)
    )
    return [6, 0, lambda: (bytes(far.memory[:8]), bytes(near.memory[:48]))]


def both_ways(near: End, far: End) -> list[object]:
    for end in (near, far):
        end.pairs[0].post_receive(end.span(0, 600), "received")
    for end, letter in ((near, b"n"), (far, b"f")):
        end.memory[1000:1500] = letter * 500
        end.pairs[0].post_send(send(end, 1000, 500))
    return [2, 2, lambda: (bytes(near.memory[:600]), bytes(far.memory[:600]))]


def not_ready(near: End, far: End) -> list[object]:
    """The buffer is there only when the sender has tried twice."""
    near.memory[:10] = b"0123456789"
    near.pairs[0].post_send(send(near, 0, 10))

    def late() -> None:
        far.pairs[0].post_receive(far.span(0, 10), 0)

    far.nic._engine.call_later(40_000, late)
    return [1, 1, lambda: bytes(far.memory[:10])]


def refused(near: End, far: End) -> list[object]:
    """A write that is refused ends as verbs say, whatever is lost."""
    near.pairs[0].post_send(remote(Opcode.RDMA_WRITE, near, 0, 600, far.region, context="good"))
    near.pairs[0].post_send(remote(Opcode.RDMA_WRITE, near, 0, 600, far.region, rkey=3))
    return [2, 0, lambda: (near.outcome(), far.pairs[0].state)]


EXCHANGES = (small_sends, a_long_send, a_write_and_a_read, atomics, both_ways, not_ready, refused)


@pytest.fixture(autouse=True)
def repeats_get_through(monkeypatch: pytest.MonkeyPatch) -> list[Taken]:
    """The machine sees what the seal would drop as repeated: it takes nothing twice by itself."""
    let_through: list[Taken] = []

    class Lenient(DatagramSeal):
        def open(self, datagram: memoryview, own: bytes) -> Taken | None:
            taken = super().open(datagram, own)
            if taken is Taken.REPEATED:
                let_through.append(taken)
                return Taken.NEW
            return taken

    monkeypatch.setattr(device, "DatagramSeal", Lenient)
    return let_through


@pytest.fixture
def world() -> Iterator[Callable[[], World]]:
    opened = []

    def make() -> World:
        manager = two_networks("virtual")
        opened.append(manager)
        return manager.__enter__()

    yield make
    for manager in opened:
        manager.__exit__(None, None, None)


def run(world: World, exchange: Callable[[End, End], list[object]], plan: dict[int, str]):
    """Do an exchange under these faults.

    Returns:
        What came of it, packets sent, and what struck.
    """
    counter, sent = FaultCounter(), [0]
    for network, engine in ((world.left, world.engines[0]), (world.right, world.engines[1])):
        network.install(Strikes(engine, counter, plan, sent))
    near, far = ends(world, mtu=256, window=4, max_reads=2)
    near_done, far_done, result = exchange(near, far)
    until(
        world,
        (near, far),
        lambda: len(near.done) >= near_done and len(far.done) >= far_done,  # type: ignore[operator]
    )
    for end in (near, far):
        end.done.sort(key=lambda one: one.opcode is Opcode.RECEIVE)
    outcome = (near.outcome(), far.outcome(), result())  # type: ignore[operator]
    # nothing comes behind it
    for _ in range(3):
        near.poll()
        far.poll()
    assert (len(near.done), len(far.done)) == (near_done, far_done)
    return outcome, sent[0], counter.delivered


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: exchange.__name__)
def test_every_single_fault(world: Callable[[], World], exchange) -> None:
    expected, packets, _ = run(world(), exchange, {})
    assert packets > 3
    for number in range(packets):
        for kind in KINDS:
            outcome, _, struck = run(world(), exchange, {number: kind})
            assert struck == {kind: 1}, (number, kind)
            assert outcome == expected, (number, kind)


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: exchange.__name__)
def test_every_pair_of_losses(world: Callable[[], World], exchange) -> None:
    expected, packets, _ = run(world(), exchange, {})
    for pair in combinations(range(packets + 2), 2):
        if pair[0] >= packets:
            continue
        outcome, sent, struck = run(world(), exchange, dict.fromkeys(pair, "drop"))
        assert struck["drop"] == sum(number < sent for number in pair) > 0
        assert outcome == expected, pair


def test_packets_of_an_earlier_connection_are_not_taken(world: Callable[[], World]) -> None:
    """They arrive when both queue pairs have been connected anew."""
    it = world()
    counter, sent = FaultCounter(), [0]
    it.left.install(Strikes(it.engines[0], counter, {0: "delay"}, sent))
    near, far = ends(it)
    near.memory[:3] = b"old"
    far.pairs[0].post_receive(far.span(0, 10), 0)
    near.pairs[0].post_send(send(near, 0, 3))
    for end in (near, far):
        end.pairs[0].modify(State.RESET)
        end.pairs[0].modify(State.INIT)
    join(near.pairs[0], far.pairs[0], TIMING)
    far.pairs[0].post_receive(far.span(0, 10), 0)
    late = it.engines[0].now() + 2 * LATE
    it.engines[0].call_later(2 * LATE, lambda: None)
    until(it, (near, far), lambda: it.engines[0].now() >= late)
    assert counter.delivered == {"delay": 1}
    assert far.done == []
    near.memory[:3] = b"new"
    near.pairs[0].post_send(SendWork(Opcode.SEND, [near.span(0, 3)], 0))
    until(it, (near, far), lambda: bool(far.done))
    assert far.memory[:3] == b"new"


def noted(end: End, name: str) -> int:
    """How often the device has written such an event."""
    return sum(event.name == name for event in end.nic.trace)


@pytest.mark.parametrize("repeated", ["none", "early packets", "the NAK", "everything"])
def test_a_loss_is_answered_once(
    world: Callable[[], World], repeated: str, repeats_get_through: list[Taken]
) -> None:
    """One NAK and one going back, whatever the wire repeats."""
    it = world()
    count = 8
    plan = {0: "drop"}
    if repeated in ("early packets", "everything"):
        plan |= dict.fromkeys(range(1, count), "duplicate")
    if repeated in ("the NAK", "everything"):
        plan[count] = "duplicate"
    if repeated == "everything":
        plan |= dict.fromkeys(range(count + 1, 100), "duplicate")
    counter, sent = FaultCounter(), [0]
    for network, engine in ((it.left, it.engines[0]), (it.right, it.engines[1])):
        network.install(Strikes(engine, counter, plan, sent))
    near, far = ends(it, window=count)
    for end in (near, far):
        end.nic.trace.start()
    for _ in range(count):
        far.pairs[0].post_receive(far.span(0, 10), 0)
    for _ in range(count):
        near.pairs[0].post_send(send(near, 0, 10))
    until(it, (near, far), lambda: len(near.done) == len(far.done) == count)
    late = it.engines[0].now() + 2 * LATE
    it.engines[0].call_later(2 * LATE, lambda: None)
    until(it, (near, far), lambda: it.engines[0].now() >= late)
    assert (noted(far, "MISSED"), noted(near, "GO_BACK"), noted(near, "TIMEOUT")) == (1, 1, 0)
    assert counter.delivered["drop"] == 1
    repeats = {"none": 0, "early packets": count - 1, "the NAK": 1}
    assert counter.delivered["duplicate"] == repeats.get(repeated, sent[0] - 1)
    assert len(repeats_get_through) == counter.delivered["duplicate"]


def test_an_answer_that_is_lost_is_asked_for_once(world: Callable[[], World]) -> None:
    """All answers behind it say the same."""
    it = world()
    counter, sent = FaultCounter(), [0]
    # the second packet of the answer is lost
    it.right.install(Strikes(it.engines[1], counter, {1: "drop"}, sent))
    near, far = ends(it, mtu=256)
    near.nic.trace.start()
    near.pairs[0].post_send(remote(Opcode.RDMA_READ, near, 0, 12 * 256, far.region))
    until(it, (near, far), lambda: bool(near.done))
    assert (noted(near, "ANSWER_LOST"), noted(near, "TIMEOUT")) == (1, 0)
    assert counter.delivered == {"drop": 1}


@pytest.mark.parametrize("kind", ["duplicate", "late duplicate"])
def test_an_rnr_nak_that_is_repeated_counts_once(world: Callable[[], World], kind: str) -> None:
    """Each packet that is sent may be answered by one."""
    it = world()
    counter, sent, answers = FaultCounter(), [0], [0]
    it.left.install(Strikes(it.engines[0], counter, {}, sent))
    it.right.install(Strikes(it.engines[1], counter, dict.fromkeys(range(5), kind), answers))
    near, far = ends(it)
    near.nic.trace.start()
    near.pairs[0].post_send(send(near, 0, 10))
    later = it.engines[0].now() + 3 * LATE
    it.engines[0].call_later(3 * LATE, lambda: None)
    until(it, (near, far), lambda: it.engines[0].now() >= later)
    far.pairs[0].post_receive(far.span(0, 10), 0)
    until(it, (near, far), lambda: bool(near.done))
    assert counter.delivered == {kind: 5}
    assert noted(near, "TIMEOUT") == 0
    assert sent[0] == noted(near, "NOT_READY") + 1 > 6
