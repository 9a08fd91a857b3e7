"""Each fault does what its name says, counts it, and works under the readiness of both worlds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from ompy.net.base import Datagram, LinkError, Network, Stream
from ompy.net.faults.middleware import (
    BlackHole,
    Corrupt,
    Cut,
    Drop,
    Duplicate,
    Fault,
    FaultCounter,
    NothingDelivered,
    Reorder,
)
from ompy.trace.sink import Trace

from tests.support.networks import World, pump, two_networks

SECOND = 10**9
PACKETS = [bytes([number]) * 20 for number in range(120)]


@pytest.fixture(params=["real", "virtual"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with two_networks(request.param) as made:
        yield made


@pytest.fixture
def counter() -> FaultCounter:
    return FaultCounter()


def arrivals(world: World, sender: Datagram, packets: Sequence[bytes]) -> list[bytes]:
    """Send `packets` to a new socket; what came, until the last word, which no fault may hit."""
    plain = world.right.datagram(world.hosts[1])
    got: list[bytes] = []
    room = bytearray(100)
    end = b"end"
    for packet in packets:
        sender.send(memoryview(packet), plain.address)
    after: list[bytes] = []

    def ended() -> bool:
        while (found := plain.receive_into(memoryview(room))) is not None:
            (after if bytes(room[: found[0]]) == end else got).append(bytes(room[: found[0]]))
        return bool(after)

    def bare(datagram: Datagram) -> Datagram:
        return bare(datagram.inner) if hasattr(datagram, "inner") else datagram

    # long after everything else, whatever jitter or delay there was
    world.engines[0].call_later(
        SECOND // 5, lambda: bare(sender).send(memoryview(end), plain.address)
    )
    if hasattr(world.engines[0], "scheduler"):
        world.engines[0].scheduler.after(SECOND, lambda: None)
    world.until(ended)
    plain.close()
    return got


def sender(world: World, *faults: Fault) -> Datagram:
    for fault in faults:
        world.left.install(fault)
    socket = world.left.datagram(world.hosts[0])
    world.at_end(socket.close)
    return socket


def test_drop(world: World, counter: FaultCounter) -> None:
    got = arrivals(world, sender(world, Drop(world.engines[0], counter, rate=0.3)), PACKETS)
    lost = set(PACKETS) - set(got)
    assert 3 < len(lost) == counter.delivered["drop"] < 90
    assert len(got) + len(lost) == len(PACKETS)


def test_duplicate(world: World, counter: FaultCounter) -> None:
    got = arrivals(world, sender(world, Duplicate(world.engines[0], counter, rate=0.3)), PACKETS)
    assert set(got) == set(PACKETS)
    assert 3 < len(got) - len(PACKETS) == counter.delivered["duplicate"] < 90


def test_reorder(world: World, counter: FaultCounter) -> None:
    fault = Reorder(world.engines[0], counter, rate=0.2, delay=SECOND // 100)
    got = arrivals(world, sender(world, fault), PACKETS)
    assert sorted(got) == PACKETS
    assert got != PACKETS
    assert 1 < counter.delivered["reorder"] < 90


def test_corrupt_flips_one_bit_of_a_copy(world: World, counter: FaultCounter) -> None:
    packets = [bytes(64)] * 100
    mine = bytearray(64)
    got = arrivals(world, sender(world, Corrupt(world.engines[0], counter, rate=0.4)), [mine] * 100)
    ones = [int.from_bytes(packet, "big").bit_count() for packet in got]
    assert len(got) == len(packets)
    assert set(ones) == {0, 1}
    assert sum(ones) == counter.delivered["corrupt"]
    assert mine == bytes(64), "the sender's memory is the sender's"


def test_faults_combine(world: World, counter: FaultCounter) -> None:
    engine = world.engines[0]
    faults = Drop(engine, counter, rate=0.3), Duplicate(engine, counter, rate=0.5)
    got = arrivals(world, sender(world, *faults), PACKETS)
    # the outermost one, installed last, doubles first; each copy is dropped or not
    sent = len(PACKETS) + counter.delivered["duplicate"]
    assert len(got) == sent - counter.delivered["drop"]
    counter.require("drop", "duplicate")
    assert any(got.count(packet) == 2 for packet in PACKETS)


def test_a_late_packet_of_a_closed_socket_is_lost(world: World, counter: FaultCounter) -> None:
    engine = world.engines[0]
    socket = sender(world, Reorder(engine, counter, rate=1, delay=10))
    socket.send(memoryview(b"x"), socket.address)
    socket.close()
    world.engines[0].call_later(SECOND // 100, lambda: passed.append(1))
    passed: list[int] = []
    world.until(lambda: bool(passed))
    counter.require("reorder")


def test_what_was_not_delivered_is_named(counter: FaultCounter) -> None:
    counter.delivered["drop"] += 1
    counter.require("drop")
    with pytest.raises(NothingDelivered, match="kind cut, black hole .* {'drop': 1}"):
        counter.require("drop", "cut", "black hole")


def test_traced(world: World, counter: FaultCounter) -> None:
    trace = Trace(3, world.engines[0].now)
    fault = Drop(world.engines[0], counter, rate=1, trace=trace)
    socket = sender(world, fault)
    socket.send(memoryview(b"12"), socket.address)
    assert not list(trace)
    trace.start()
    socket.send(memoryview(b"123"), socket.address)
    (event,) = trace
    assert event.name == "DROP"
    assert dict(event.fields) == {"size": 3, "to": socket.address}


def noticed(world: World, network: Network, stream: Stream) -> None:
    """Time passes until the readiness set says that `stream` wants attention."""
    ready = network.readiness()
    ready.add(stream, "owner")
    world.until(lambda: any(r.owner == "owner" and r.readable for r in ready.poll()))
    ready.remove(stream)
    ready.close()


def test_cut_resets_connections(world: World, counter: FaultCounter) -> None:
    fault = Cut(world.engines[1], counter)
    world.right.install(fault)
    left, right = world.pair()
    assert pump(world, right, left, b"x" * 3000) == b"x" * 3000
    fault.cut()
    noticed(world, world.right, right)
    room = memoryview(bytearray(10))
    with pytest.raises(LinkError, match="interface is down"):
        right.receive_into(room)
    with pytest.raises(LinkError, match="interface is down"):
        right.send([room])
    right.close()
    noticed(world, world.left, left)
    assert left.receive_into(room) == 0, "the peer sees the connection end"
    assert counter.delivered["cut"] == 1
    assert not fault.streams
    left.close()
    listener = world.left.listen(world.hosts[0])
    late = world.right.connect(listener.address)
    with pytest.raises(LinkError, match="is down"):
        late.send([room])
    late.close()
    listener.close()
    fault.restore()
    left, right = world.pair()
    assert pump(world, right, left, b"again") == b"again"
    left.close()
    right.close()


def test_cut_after_so_many_bytes(world: World, counter: FaultCounter) -> None:
    world.right.install(Cut(world.engines[1], counter, after=1000))
    left, right = world.pair()
    with pytest.raises(LinkError, match="connection reset"):
        pump(world, right, left, bytes(5000))
    left.close()
    right.close()


def test_cut_of_datagrams(world: World, counter: FaultCounter) -> None:
    fault = Cut(world.engines[0], counter)
    socket = sender(world, fault)
    assert arrivals(world, socket, [b"1"]) == [b"1"]
    fault.cut()
    with pytest.raises(LinkError, match="the network is down"):
        socket.send(memoryview(b"2"), socket.address)
    fault.restore()
    assert arrivals(world, socket, [b"3"]) == [b"3"]
    assert counter.delivered["cut"] == 1


def test_black_hole_loses_packets(world: World, counter: FaultCounter) -> None:
    fault = BlackHole(world.engines[0], counter, gives_up=SECOND)
    socket = sender(world, fault)
    fault.open()
    assert arrivals(world, socket, [b"1", b"2"]) == []
    fault.close()
    assert arrivals(world, socket, [b"3"]) == [b"3"]
    assert counter.delivered["black hole"] == 2


def test_a_connection_outlives_a_short_black_hole(world: World, counter: FaultCounter) -> None:
    fault = BlackHole(world.engines[1], counter, gives_up=SECOND)
    world.right.install(fault)
    left, right = world.pair()
    assert pump(world, right, left, b"x" * 3000) == b"x" * 3000
    fault.open()
    data = bytes(range(256)) * 1000  # more than fits the way at once
    assert right.send([memoryview(data)]) == len(data)
    room = memoryview(bytearray(10))
    assert left.receive_into(room) < 0, "nothing comes through"
    fault.close()
    assert right.send([memoryview(b"end")]) == 3
    assert pump_in(world, left, len(data) + 3) == data + b"end", "in order, and whole"
    counter.require("black hole")
    left.close()
    right.close()


def pump_in(world: World, target: Stream, size: int) -> bytes:
    got = bytearray()

    def here() -> bool:
        room = bytearray(5000)
        while (count := target.receive_into(memoryview(room))) > 0:
            got.extend(room[:count])
        return len(got) >= size

    world.until(here)
    return bytes(got)


def test_the_system_gives_up_in_a_long_black_hole(world: World, counter: FaultCounter) -> None:
    fault = BlackHole(world.engines[1], counter, gives_up=SECOND // 20)
    world.right.install(fault)
    left, right = world.pair()
    pump(world, right, left, b"x")
    fault.open()
    right.send([memoryview(b"lost")])
    noticed(world, world.right, right)
    with pytest.raises(LinkError, match="timed out"):
        right.receive_into(memoryview(bytearray(4)))
    right.close()
    left.close()
