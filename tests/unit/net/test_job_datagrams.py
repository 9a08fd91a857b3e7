"""Datagrams between processes of a job: who is heard, and who is not, in both worlds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ompy.data.errors import ERR_ARG, MPIError
from ompy.engine.base import Engine
from ompy.frameworks.context import RankContext
from ompy.frameworks.datagrams import BURST, DATAGRAM_MAX, LARGEST, SEAL_SIZE, JobDatagrams
from ompy.frameworks.proc import Modex, Proc
from ompy.frameworks.wireup import WireUp
from ompy.mca.component import NotAvailable
from ompy.net.base import Address, Datagram, Interface, LinkError, Network
from ompy.net.faults.middleware import Corrupt, Cut, FaultCounter
from ompy.net.seals import datagram_seal
from ompy.trace.sink import Trace

from tests.support.networks import World, two_networks

KEY = bytes(range(32))


class Board(WireUp):
    """What the ranks have published, visible at once."""

    def __init__(self) -> None:
        self.entries: dict[int, dict[str, bytes]] = {0: {}, 1: {}}
        self.rank = 0

    def publish(self, key: str, value: bytes) -> None:
        self.entries[self.rank][key] = value

    def lookup(self, rank: int) -> Modex:
        return self.entries[rank]


@pytest.fixture(params=["real", "virtual"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with two_networks(request.param) as made:
        yield made


def context(
    rank: int, network: Network, engine: Engine, board: Board, key: bytes = KEY, hosts: int = 1
) -> RankContext:
    board.rank = rank
    procs = [Proc(0, 0, 0, "host0"), Proc(1, hosts - 1, 2 - hosts, f"host{hosts - 1}")]
    trace = Trace(rank, engine.now)
    return RankContext(
        rank,
        procs,
        engine=engine,
        network=network,
        wireup=board,
        trace=trace,
        job_id=b"12345678",
        job_key=key,
    )


def pair(world: World, names: tuple[str, str] = ("btl.x", "btl.x"), keys=(KEY, KEY)):
    board = Board()
    made = []
    for rank, network in enumerate((world.left, world.right)):
        ours = context(rank, network, world.engines[rank], board, keys[rank])
        made.append(JobDatagrams(ours, names[rank]))
        world.at_end(made[-1].close)
    for entry in board.entries.values():  # as if everybody used both names
        (address,) = entry.values()
        entry.update(dict.fromkeys(names, address))
    return (*made, made[0]._context.procs)


def take(world: World, datagrams: JobDatagrams, count: int = 1) -> list[tuple[int, bytes]]:
    got: list[tuple[int, bytes]] = []

    def enough() -> bool:
        got.extend((proc.rank, bytes(data)) for proc, data in datagrams.arrived())
        return len(got) >= count

    world.until(enough)
    return got


def refused(world: World, datagrams: JobDatagrams, count: int) -> None:
    """Nothing gets through, and `count` datagrams are refused."""

    def enough() -> bool:
        assert list(datagrams.arrived()) == []
        return datagrams.refused >= count

    world.until(enough)
    assert datagrams.refused == count


def test_both_ways_with_the_senders_rank(world: World) -> None:
    left, right, procs = pair(world)
    assert left.send(procs[1], b"one ", b"piece", b"") is True
    assert take(world, right) == [(0, b"one piece")]
    assert right.send(procs[0], b"") is True
    assert take(world, left) == [(1, b"")]
    assert left.refused == right.refused == 0


def test_the_largest_and_one_byte_more(world: World) -> None:
    left, right, procs = pair(world)
    data = bytes(range(256)) * (LARGEST // 256 + 1)
    assert left.send(procs[1], data[:LARGEST]) is True
    assert take(world, right) == [(0, data[:LARGEST])]
    with pytest.raises(MPIError, match=f"btl.x: {LARGEST + 1} bytes .* holds {LARGEST}") as problem:
        left.send(procs[1], data[: LARGEST + 1])
    assert problem.value.code == ERR_ARG


def test_one_iteration_takes_a_bounded_number(world: World) -> None:
    left, right, procs = pair(world)
    count = 2 * BURST + 3
    for number in range(count):
        left.send(procs[1], bytes([number]))
    got: list[bytes] = []

    def all_here() -> bool:
        some = [bytes(data) for _, data in right.arrived()]
        assert len(some) <= BURST
        got.extend(some)
        return len(got) == count

    world.until(all_here)
    assert sorted(got) == [bytes([number]) for number in range(count)]
    assert not right.ready()


def test_strangers_are_refused(world: World) -> None:
    """Without the key nothing gets through, whatever it looks like."""
    left, right, procs = pair(world)
    spy = world.left.datagram(world.hosts[0])
    world.at_end(spy.close)
    target = right._address(procs[1])
    for packet in (b"", b"x", bytes(SEAL_SIZE), bytes(SEAL_SIZE + 4), bytes(60_000)):
        spy.send(memoryview(packet), target)
    refused(world, right, 5)
    left.send(procs[1], b"still heard")
    assert take(world, right) == [(0, b"still heard")]


def test_another_jobs_key_is_refused(world: World) -> None:
    left, right, procs = pair(world, keys=(KEY, KEY[::-1]))
    left.send(procs[1], b"?")
    refused(world, right, 1)
    right.send(procs[0], b"?")
    refused(world, left, 1)


def test_another_name_is_refused(world: World) -> None:
    left, right, procs = pair(world, names=("btl.x", "btl.y"))
    left.send(procs[1], b"?")
    refused(world, right, 1)


def test_a_recorded_datagram_is_refused_by_everybody_else(world: World) -> None:
    left, right, procs = pair(world)
    recorded: list[bytes] = []

    class Recorder(Datagram):
        def __init__(self, inner: Datagram) -> None:
            self.inner = inner

        def send(self, packet: memoryview, address: Address) -> bool:
            recorded.append(bytes(packet))
            return self.inner.send(packet, address)

    right._socket, honest = Recorder(right._socket), right._socket
    right.send(procs[0], b"for rank 0")
    right._socket = honest
    assert take(world, left) == [(1, b"for rank 0")]
    honest.send(memoryview(recorded[0]), right._address(procs[1]))
    refused(world, right, 1)  # not for rank 1
    honest.send(memoryview(recorded[0]), left._address(procs[0]))
    world.until(lambda: not left.arrived() and left.replayed == 1)
    assert left.refused == 0


def test_every_altered_bit_is_noticed() -> None:
    with two_networks("virtual") as world:
        counter = FaultCounter()
        world.left.install(Corrupt(world.engines[0], counter, rate=1.0))
        left, right, procs = pair(world)
        for _ in range(300):
            left.send(procs[1], b"sixteen bytes ..")
            refused(world, right, counter.delivered["corrupt"])
        assert right.refused == 300


def test_a_network_that_is_down_takes_nothing() -> None:
    with two_networks("virtual") as world:
        cut = Cut(world.engines[0], FaultCounter())
        world.left.install(cut)
        left, right, procs = pair(world)
        cut.cut()
        assert left.send(procs[1], b"lost") is False
        cut.restore()
        assert left.send(procs[1], b"kept") is True
        assert take(world, right) == [(0, b"kept")]


def test_who_is_reached(world: World) -> None:
    board = Board()
    ours = context(0, world.left, world.engines[0], board)
    datagrams = JobDatagrams(ours, "btl.x")
    world.at_end(datagrams.close)
    assert datagrams.reaches(ours.procs[0])
    assert not datagrams.reaches(ours.procs[1]), "it has published nothing"
    with pytest.raises(AssertionError, match=r"rank 1 on host0 has no socket of the name btl\.x"):
        datagrams.send(ours.procs[1], b"")


def test_closed(world: World) -> None:
    left, right, procs = pair(world)
    left.send(procs[1], b"x")
    world.until(right.ready)
    right.close()
    right.close()
    assert not right.ready()
    assert list(right.arrived()) == []


class Interfaces(Network):
    """A host with these interfaces; each can be bound to unless it is down."""

    def __init__(self, world: World, interfaces: list[Interface], down: bool = False) -> None:
        super().__init__()
        self._world, self._interfaces, self._down = world, interfaces, down
        self.bound: list[str] = []
        self.readiness = world.left.readiness

    def interfaces(self) -> list[Interface]:
        return self._interfaces

    def datagram(self, host: str, port: int = 0) -> Datagram:
        if self._down:
            raise LinkError(f"cannot bind to {host}: down")
        self.bound.append(host)
        return self._world.left.datagram(self._world.hosts[0])


LOOPBACK = Interface("lo", "127.0.0.1", 8, True)
OUTER = [Interface("eth0", "10.0.0.1", 24, False), Interface("eth1", "10.1.0.1", 24, False)]


@pytest.mark.parametrize(
    ("hosts", "interfaces", "chosen"),
    [
        (1, [LOOPBACK, *OUTER], "127.0.0.1"),
        (1, OUTER, "10.0.0.1"),
        (2, [LOOPBACK, *OUTER], "10.0.0.1"),
        (2, [LOOPBACK], "127.0.0.1"),
    ],
)
def test_interface(hosts: int, interfaces: list[Interface], chosen: str) -> None:
    with two_networks("virtual") as world:
        network = Interfaces(world, interfaces)
        ours = context(0, network, world.engines[0], Board(), hosts=hosts)
        JobDatagrams(ours, "btl.x").close()
        assert network.bound == [chosen]


def test_not_available() -> None:
    with two_networks("virtual") as world:
        for network, why in (
            (Interfaces(world, []), "no network interface"),
            (Interfaces(world, OUTER, down=True), "cannot bind to 10.0.0.1: down"),
        ):
            with pytest.raises(NotAvailable, match=why):
                JobDatagrams(context(0, network, world.engines[0], Board()), "btl.x")


def test_sizes_fit_a_datagram() -> None:
    assert SEAL_SIZE == datagram_seal.SEAL_SIZE == 24
    assert LARGEST + SEAL_SIZE + 4 == DATAGRAM_MAX
