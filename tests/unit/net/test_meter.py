"""What a rank's rails carry is counted by peer and interface, and nothing else changes."""

from __future__ import annotations

import socket
import time

from ompy.net.base import Address, Datagram, Interface, Network, Stream
from ompy.net.meter import Meter
from ompy.net.sockets import SocketStream

INTERFACES = [
    Interface("lo", "127.0.0.1", 8, True),
    Interface("eth0", "10.0.0.1", 24, False),
]


class Host(Network):
    def interfaces(self):
        return INTERFACES

    def in_network(self, address, network):
        return address.split(".")[0] == network.split(".")[0]


class Pipe(Stream):
    """Takes ten bytes at a time and acknowledges as told."""

    def __init__(self):
        self.waiting = 0
        self.rank = -1
        self.closed = False

    def send(self, pieces):
        return min(sum(map(len, pieces)), 10)

    def unacknowledged(self):
        assert not self.closed
        return self.waiting

    def belongs_to(self, rank):
        self.rank = rank

    def close(self):
        self.closed = True


class Packets(Datagram):
    address = Address("10.0.0.1", 7)

    def send(self, packet, address):
        return len(packet) < 100

    def send_run(self, packets, address):
        return 2


def metered():
    network = Host()
    meter = Meter(network)
    network.install(meter)
    return network, meter


def test_a_connection_is_counted_for_its_peer_once_that_is_known() -> None:
    _, meter = metered()
    inner = Pipe()
    stream = meter.stream(inner, Address("10.0.0.2", 9))
    assert stream.send([memoryview(bytes(30))]) == 10, "what is taken is what counts"
    assert meter.carried() == {(-1, "eth0"): 10}
    stream.belongs_to(3)
    assert inner.rank == 3, "who is below wants to know, too"
    stream.send([memoryview(bytes(4))])
    assert meter.carried() == {(3, "eth0"): 14}


def test_what_the_other_host_has_not_acknowledged_has_not_been_carried() -> None:
    _, meter = metered()
    inner = Pipe()
    stream = meter.stream(inner, Address("127.0.0.1", 9))
    stream.belongs_to(1)
    stream.send([memoryview(bytes(10))])
    inner.waiting = 4
    assert meter.carried() == {(1, "lo"): 6}
    stream.close()
    assert inner.closed
    stream.close()
    assert meter.carried() == {(1, "lo"): 6}, "the rest went under with the connection"
    another = meter.stream(Pipe(), Address("127.0.0.1", 9))
    another.belongs_to(1)
    another.send([memoryview(bytes(5))])
    assert meter.carried() == {(1, "lo"): 11}


def test_packets_are_counted_when_they_are_taken() -> None:
    network, meter = metered()
    network.introduce(2, [Address("10.0.0.2", 5)])
    found = meter.datagram(Packets())
    peer = Address("10.0.0.2", 5)
    assert found.send(memoryview(bytes(50)), peer)
    assert not found.send(memoryview(bytes(200)), peer)
    assert found.send_run([memoryview(bytes(8))] * 3, peer) == 2
    assert meter.carried() == {(2, "eth0"): 66}
    assert found.address == Packets.address


def test_the_kernel_says_what_is_on_its_way() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        stream = SocketStream(client)
        taken = 0
        while more := stream.send([memoryview(bytes(1 << 20))]):  # until neither side takes more
            taken += more
        waiting = stream.unacknowledged()
        assert 0 < waiting < taken
        accepted.settimeout(5)
        left = taken
        while left:
            left -= len(accepted.recv(1 << 20))
        deadline = time.monotonic() + 5
        while stream.unacknowledged():
            assert time.monotonic() < deadline
        stream.close()
        assert stream.unacknowledged() == 0
        accepted.close()
