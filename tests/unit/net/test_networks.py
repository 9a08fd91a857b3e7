"""Streams, datagrams, segments and copies: one test source for the real and the virtual net."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pytest
from ompy.engine.real import RealEngine
from ompy.net.base import (
    WOULD_BLOCK,
    Address,
    Datagram,
    LinkError,
    Middleware,
    Stream,
)
from ompy.net.faults.wrapped import WrappedStream
from ompy.net.real import RealNetwork
from ompy.net.virtual.virtual_network import VirtualNetwork
from ompy.runtime.launching.singleton import SingletonWireUp
from ompy.runtime.simulation.remote import RemoteNetwork

from tests.support.networks import World, pump, two_networks


@pytest.fixture(params=["real", "virtual", "simulated"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with two_networks(request.param) as made:
        yield made


def test_stream_carries_bytes_both_ways(world: World) -> None:
    left, right = world.pair()
    data = bytes(range(256)) * 3000
    assert pump(world, right, left, data) == data
    assert pump(world, left, right, data[::-1]) == data[::-1]
    left.close()
    right.close()


def test_stream_says_when_nothing_is_here_and_when_the_peer_has_closed(world: World) -> None:
    left, right = world.pair()
    room = memoryview(bytearray(10))
    assert left.receive_into(room) == WOULD_BLOCK
    left_to_send = [memoryview(b"last")]

    def all_sent() -> bool:
        left_to_send[0] = left_to_send[0][right.send(left_to_send) :]
        return not left_to_send[0]

    world.until(all_sent)
    right.close()
    got = bytearray()

    def ended() -> bool:
        count = left.receive_into(room)
        if count > 0:
            got.extend(room[:count])
        return count == 0

    world.until(ended)
    assert got == b"last"
    left.close()
    left.close()


def test_refused_connection(world: World) -> None:
    listener = world.left.listen(world.hosts[0])
    gone = listener.address
    listener.close()
    room = memoryview(bytearray(1))

    def refused() -> bool:
        try:
            stream = world.right.connect(gone)
        except LinkError:
            return True
        try:
            world.until(lambda: stream.send([memoryview(b"x")]) + stream.receive_into(room) > 9)
        except LinkError:
            return True
        finally:
            stream.close()
        return False

    assert refused()


def test_readiness(world: World) -> None:
    left, right = world.pair()
    ready = world.left.readiness()
    ready.add(left, "left")
    assert ready.poll() == []
    ready.want_write(left, wanted=True)
    world.until(lambda: bool(ready.poll()))
    assert [tuple(found) for found in ready.poll()] == [("left", False, True)]
    ready.want_write(left, wanted=False)
    assert ready.poll() == []
    world.until(lambda: right.send([memoryview(b"x")]) == 1)
    world.until(lambda: bool(ready.poll()))
    assert [tuple(found) for found in ready.poll()] == [("left", True, False)]
    ready.remove(left)
    ready.remove(left)
    assert ready.poll() == []
    ready.close()
    left.close()
    right.close()


def test_datagrams(world: World) -> None:
    left = world.left.datagram(world.hosts[0])
    right = world.right.datagram(world.hosts[1])
    room = memoryview(bytearray(4))
    assert right.receive_into(room) is None
    packets = [b"a", b"bb", b"too long"]
    for packet in packets:
        assert left.send(memoryview(packet), right.address)
    got = []

    def all_here() -> bool:
        while (found := right.receive_into(room)) is not None:
            got.append((bytes(room[: found[0]]), found[1]))
        return len(got) == 3

    world.until(all_here)
    assert sorted(got) == sorted((packet[:4], left.address) for packet in packets)
    left.send(memoryview(b"x"), Address(world.hosts[1], 1))  # nobody there: lost, no error
    left.close()
    right.close()
    with pytest.raises(LinkError):
        world.left.datagram("203.0.113.7")


def test_what_is_closed_refuses(world: World) -> None:
    """A fault that sends late hands its packet to a socket that may be closed by then."""
    left, right = world.pair()
    listener = world.right.listen(world.hosts[1])
    datagram = world.left.datagram(world.hosts[0])
    ready = world.left.readiness()
    for one in (left, datagram):
        ready.add(one, "closed")
        ready.want_write(one, wanted=True)
    world.until(lambda: bool(ready.poll()))
    for one in (left, listener, datagram):
        one.close()
        one.close()
    assert ready.poll() == []
    with pytest.raises(LinkError):
        datagram.send(memoryview(b"late"), datagram.address)
    with pytest.raises(LinkError):
        datagram.receive_into(memoryview(bytearray(9)))
    with pytest.raises(LinkError):
        left.send([memoryview(b"late")])
    with pytest.raises(LinkError):
        left.receive_into(memoryview(bytearray(9)))
    left.fail("late")
    assert listener.accept() is None
    world.left.readiness()
    assert ready.poll() == []
    right.close()


def test_segment_is_zero_and_shared_by_name(world: World) -> None:
    one = world.left.segment("seg", 4096)
    assert bytes(one) == bytes(4096)
    one[5] = 9
    assert world.left.segment("seg", 4096)[5] == 9
    assert world.left.segment("other", 4096)[5] == 0
    if isinstance(world.left, VirtualNetwork):
        assert world.right.segment("seg", 4096)[5] == 9
        with pytest.raises(LinkError):
            world.right.segment("seg", 8192)


def test_process_copy(world: World) -> None:
    here, there = world.left.process_copy(), world.right.process_copy()
    if here is None or there is None:
        pytest.skip("no process_vm_readv on this system")
    if isinstance(world.left, RemoteNetwork):  # each is on a host of its own
        there = here
    source, target = bytearray(b"0123456789"), bytearray(10)
    address = there.address_of(memoryview(source))
    here.read(there.identity, address + 2, memoryview(target)[:5])
    assert target == b"23456\0\0\0\0\0"
    here.write(there.identity, address, memoryview(b"ab"))
    assert source == b"ab23456789"
    with pytest.raises(LinkError):
        here.read(there.identity, 16, memoryview(target))


def test_listen_at_a_port_of_a_range(world: World) -> None:
    first = world.left.listen(world.hosts[0], range(39_201, 39_220))
    second = world.left.listen(world.hosts[0], range(39_201, 39_220))
    assert 39_201 <= first.address.port < second.address.port < 39_220
    taken = range(first.address.port, first.address.port + 1)
    with pytest.raises(LinkError):
        world.left.listen(world.hosts[0], taken)
    first.close()
    second.close()


def test_networks_by_address(world: World) -> None:
    interface = world.left.interfaces()[0]
    network = f"{interface.address}/{interface.prefix}"
    assert world.left.in_network(world.hosts[1], network)
    assert not world.left.in_network(world.hosts[1], "203.0.113.0/24")
    if isinstance(world.left, RealNetwork):
        for wrong in ("10.0.0.0", "10.0.0.0/x", "nowhere/8"):
            with pytest.raises(LinkError):
                world.left.in_network("10.0.0.1", wrong)


class Counting(Middleware):
    """Counts bytes on their way: the seam where faults will sit."""

    def __init__(self) -> None:
        self.sent = 0

    def stream(self, stream: Stream, peer: Address) -> Stream:
        return CountedStream(self, stream)

    def datagram(self, datagram: Datagram) -> Datagram:
        return CountedDatagram(self, datagram)


class CountedStream(WrappedStream):
    def __init__(self, counter: Counting, inner: Stream) -> None:
        super().__init__(inner)
        self.counter = counter

    def send(self, pieces: Sequence[memoryview]) -> int:
        taken = self.inner.send(pieces)
        self.counter.sent += taken
        return taken


class CountedDatagram(Datagram):
    def __init__(self, counter: Counting, inner: Datagram) -> None:
        self.counter = counter
        self.inner = inner
        self.address = inner.address

    def send(self, packet: memoryview, address: Address) -> bool:
        self.counter.sent += len(packet)
        return self.inner.send(packet, address)

    def receive_into(self, view: memoryview) -> tuple[int, Address] | None:
        return self.inner.receive_into(view)

    def close(self) -> None:
        self.inner.close()


def test_middleware_sees_every_stream_and_datagram(world: World) -> None:
    counters = Counting(), Counting()
    world.left.install(counters[0])
    world.right.install(counters[1])
    left, right = world.pair()
    ready = world.left.readiness()
    ready.add(left, "through the wrapper")
    assert pump(world, right, left, b"x" * 5000) == b"x" * 5000
    assert pump(world, left, right, b"y" * 70) == b"y" * 70
    assert (counters[0].sent, counters[1].sent) == (70, 5000)
    ready.remove(left)
    ready.close()
    packet = world.left.datagram(world.hosts[0])
    packet.send(memoryview(b"123"), packet.address)
    assert counters[0].sent == 73
    for source in (left, right, packet):
        source.close()


def test_anonymous_memory_leaves_no_file() -> None:
    before = set(os.listdir("/dev/shm"))
    engine = RealEngine(1)
    network = RealNetwork(engine, 0, SingletonWireUp())
    network.segment("x", 1 << 20)[7] = 1
    assert set(os.listdir("/dev/shm")) == before
    network.close()
    engine.close()
