"""libfabric's provider udp as a datagram NIC, on real sockets over loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from ompy.engine.real import RealEngine
from ompy.frameworks.nic.base import EventKind, LinkState, NicError
from ompy.frameworks.nic.datagram import Completion, Status, Work
from ompy.frameworks.nic.fabric import FabricError
from ompy.net.base import Address
from ompy.net.real import RealNetwork
from ompy.runtime.launching.singleton import SingletonWireUp
from ompy_components.nic.libfabric.names import pack_name, unpack_name

from tests.support.libfabric_devices import datagram_nic, needs_libfabric

DEPTH = 16


class Card:
    """A device with one queue pair; its completion queue is read into `done`."""

    def __init__(self, network: RealNetwork) -> None:
        self.nic = datagram_nic(network)
        self.nic.open()
        self.queue = self.nic.domain().completion_queue(2 * DEPTH)
        self.pair = self.nic.domain().queue_pair(self.queue, DEPTH, DEPTH, self.nic.max_message)
        self.memory = memoryview(bytearray(DEPTH * 2000))
        self.done: list[Completion] = []

    def buffers(self, count: int) -> None:
        for index in range(count):
            self.pair.post_receive(self.memory[index * 2000 : (index + 1) * 2000], index)

    def bytes_of(self, completion: Completion) -> bytes:
        index = completion.context
        assert isinstance(index, int)
        return bytes(self.memory[index * 2000 :][: completion.size])

    def read(self) -> bool:
        self.done += self.queue.read(100)
        return bool(self.done)

    def received(self) -> list[bytes]:
        return [self.bytes_of(one) for one in self.done if one.work is Work.RECEIVE]


class Two:
    """Two devices, and a way to wait."""

    def __init__(self, network: RealNetwork, engine: RealEngine) -> None:
        self.engine = engine
        self.left, self.right = Card(network), Card(network)

    def until(self, ready: Callable[[], bool]) -> None:
        def look() -> bool:
            self.left.read()
            self.right.read()
            return ready()

        assert self.engine.wait_until(look, 10 * 10**9), "late"


@pytest.fixture
def two() -> Iterator[Two]:
    engine = RealEngine(1)
    network = RealNetwork(engine, 0, SingletonWireUp())
    made = Two(network, engine)
    yield made
    made.left.nic.close()
    made.right.nic.close()
    network.close()
    engine.close()


def test_names() -> None:
    address = Address("10.1.2.3", 513)
    name = pack_name(address)
    assert name[2:8] == bytes([2, 1, 10, 1, 2, 3])
    assert unpack_name(name) == address
    for wrong in (b"", name[:-1], b"\xff\xff" + name[2:], b"fi_shm://12\0"):
        with pytest.raises(ValueError, match="no address of IP version 4"):
            unpack_name(wrong)


@needs_libfabric
def test_messages_of_all_sizes(two: Two) -> None:
    two.right.buffers(4)
    messages = [b"", b"x", b"y" * 768, bytes(range(256)) * 5 + b"z" * 192]
    assert len(messages[-1]) == two.left.nic.max_message == 1472
    kept = [memoryview(bytearray(message)) for message in messages]
    for index, message in enumerate(kept):
        two.left.pair.post_send(message, two.right.pair.address, index, more=index < 3)
    two.until(lambda: len(two.left.done) == 4 and len(two.right.done) == 4)
    assert two.right.received() == messages
    sent = [(one.context, one.size, one.status) for one in two.left.done]
    assert sent == [(index, len(message), Status.OK) for index, message in enumerate(messages)]


@needs_libfabric
def test_an_inline_send_gives_the_memory_back_at_once(two: Two) -> None:
    two.right.buffers(1)
    memory = bytearray(b"before")
    two.left.pair.post_send(memoryview(memory), two.right.pair.address, 0, inline=True)
    memory[:] = b"behind"
    two.until(lambda: bool(two.right.done and two.left.done))
    assert two.right.received() == [b"before"]


@needs_libfabric
def test_what_the_provider_does_not_take_now_goes_later(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.right.buffers(3)
    full = SimpleNamespace(send=lambda *_: False, inject=lambda *_: False)
    monkeypatch.setattr(two.left.pair, "_endpoint", full)
    memory = bytearray(b"inline")
    to = two.right.pair.address
    two.left.pair.post_send(memoryview(b"first"), to, 0)
    two.left.pair.post_send(memoryview(memory), to, 1, inline=True)
    memory[:] = b"reused"
    assert two.left.queue.ready(), "a rank that has messages waiting may not sleep"
    assert two.left.queue.read(10) == []
    monkeypatch.undo()
    two.until(lambda: len(two.right.done) == 2)
    assert two.right.received() == [b"first", b"inline"]


@needs_libfabric
def test_a_refusal_is_a_link_that_is_down(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise FabricError(101, "no network")

    card = two.left
    monkeypatch.setattr(card.pair, "_endpoint", SimpleNamespace(send=refuse))
    card.pair.post_send(memoryview(b"lost"), two.right.pair.address, "gone")
    (done,) = card.queue.read(10)
    assert (done.status, done.context) == (Status.LINK_DOWN, "gone")
    (event,) = card.nic.events()
    assert event.kind is EventKind.LINK_DOWN
    assert "no network" in event.reason
    monkeypatch.undo()
    card.pair.post_send(memoryview(b"goes"), two.right.pair.address, "on")
    assert card.nic.link is LinkState.UP


@needs_libfabric
def test_full_queues_and_long_messages_are_refused(two: Two) -> None:
    pair = two.left.pair
    two.left.buffers(DEPTH)
    with pytest.raises(NicError, match="receive queue is full"):
        two.left.buffers(1)
    with pytest.raises(NicError, match="1472 at most"):
        pair.post_send(memoryview(bytes(1473)), two.right.pair.address, 0)
    for index in range(DEPTH):
        pair.post_send(memoryview(b"x"), two.right.pair.address, index)
    with pytest.raises(NicError, match="send queue is full"):
        pair.post_send(memoryview(b"x"), two.right.pair.address, 0)
    with pytest.raises(NicError, match="at most"):
        two.left.nic.domain().queue_pair(two.left.queue, 1_000_000, 1, 100)


@needs_libfabric
def test_closing_flushes(two: Two) -> None:
    two.left.buffers(3)
    two.left.pair.close()
    done = two.left.queue.read(10)
    assert sorted(one.context for one in done) == [0, 1, 2]  # type: ignore[type-var]
    assert {one.status for one in done} == {Status.FLUSHED}
    with pytest.raises(NicError, match="closed"):
        two.left.pair.ring()


@needs_libfabric
def test_a_rank_that_sleeps_is_woken(two: Two) -> None:
    """The provider's descriptor is among those the engine sleeps on."""
    two.right.buffers(1)
    assert not two.right.queue.ready()
    assert two.engine.wakeup.ready(0) == []
    two.left.pair.post_send(memoryview(b"wake up"), two.right.pair.address, 0)
    assert two.engine.wakeup.ready(5)
    two.until(lambda: bool(two.right.done))
