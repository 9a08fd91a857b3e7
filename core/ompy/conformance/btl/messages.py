"""Messages: the BTL under the PML that would be selected, as a program uses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from ompy.conformance.btl.btl_worlds import registry
from ompy.conformance.btl.fragment import content
from ompy.conformance.btl.suite import Suite, Worlds
from ompy.conformance.payloads import assert_same_bytes
from ompy.conformance.registries import Settings
from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.data.convertor import ContiguousConvertor, GrowingConvertor
from ompy.engine.virtual_engine import Deadlock, RankFailed
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import STANDARD, SYNCHRONOUS
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

SIZES: Final = (
    0,
    1,
    64,
    4000,
    4096,
    70_000,
    300_001,
)  # arbitrary: eager, rendezvous, many fragments
OUTSTANDING: Final = 40  # messages; arbitrary
RAILS: Final = (Rail("one"), Rail("two", latency=40_000, bandwidth=1_000))


class MessageSuite(Suite):
    """Through the selected PML."""

    title: ClassVar[str] = "messages"

    def test_every_protocol(self, worlds: Worlds, seed: int) -> None:
        """Messages of many sizes around a ring, standard and synchronous."""
        _run(worlds, 3, _ring, seed)

    def test_many_outstanding(self, worlds: Worlds, seed: int) -> None:
        """Everybody sends to everybody, receives posted in another order."""
        _run(worlds, 3, _crowd, seed)

    def test_messages_through_the_smallest_free_lists(self, worlds: Worlds) -> None:
        """The same with next to no room in the BTL."""
        _run(worlds, 2, _crowd, 0, settings=worlds.scarce)

    def test_order_among_messages(self, worlds: Worlds, seed: int) -> None:
        """Messages do not overtake each other, also where large ones are among them."""
        _run(worlds, 2, _overtaking, seed)

    def test_two_rails(self, worlds: Worlds, seed: int) -> None:
        """Large messages over as many rails as there are."""
        _run(worlds, 2, _ring, seed, rails=RAILS)


def _run(
    worlds: Worlds,
    ranks: int,
    program: Callable[[RankProcess], None],
    seed: int,
    *,
    settings: Settings | None = None,
    rails: Sequence[Rail] = RAILS[:1],
) -> None:
    """Run a program on full rank processes that have this BTL, and self for the own rank."""
    component = worlds.component
    reach = component.capabilities.reach
    if reach == "self":
        ranks = 1
    names = dict.fromkeys(("self", component.name))
    made = registry(component, {**worlds.settings, **(settings or {})}, ",".join(names))
    hosts = list(range(ranks)) if reach == "network" else [0] * ranks
    job = VirtualJob(ranks, made, seed=seed, hosts=hosts, rails=rails)
    try:
        job.run(program)
    except (Deadlock, RankFailed) as problem:
        raise AssertionError(f"seed {seed}: {problem}") from problem
    finally:
        made.close()


def _world(process: RankProcess) -> Communicator:
    return process.communicator(0, process.context.procs, "WORLD")


def _message(size: int, sender: int) -> ContiguousConvertor:
    return ContiguousConvertor(memoryview(content(sender, size, size)))


def _bytes(room: GrowingConvertor) -> bytes:
    assert room.view is not None, "nothing was received"
    return bytes(room.view)


def _ring(process: RankProcess) -> None:
    comm, pml = _world(process), process.pml
    target, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for size in SIZES:
        for mode in (STANDARD, SYNCHRONOUS):
            room = GrowingConvertor()
            receive = pml.irecv(comm, room, source, size)
            request = pml.isend(comm, _message(size, comm.rank), target, size, mode)
            pml.wait(comm, receive)
            pml.wait(comm, request)
            assert_same_bytes(_bytes(room), content(source, size, size), f"message of {size} bytes")


def _crowd(process: RankProcess) -> None:
    comm, pml = _world(process), process.pml
    peers = [rank for rank in range(comm.size) if rank != comm.rank] or [comm.rank]
    wanted = [(rank, number) for number in reversed(range(OUTSTANDING)) for rank in peers]
    rooms = [GrowingConvertor() for _ in wanted]
    requests = [
        pml.irecv(comm, room, rank, number)
        for (rank, number), room in zip(wanted, rooms, strict=True)
    ]
    for number in range(OUTSTANDING):
        size = SIZES[number % 6]
        message = ContiguousConvertor(memoryview(content(comm.rank, number, size)))
        requests += [pml.isend(comm, message, rank, number, STANDARD) for rank in peers]
    for request in requests:
        pml.wait(comm, request)
    for (rank, number), room in zip(wanted, rooms, strict=True):
        expected = content(rank, number, SIZES[number % 6])
        assert_same_bytes(_bytes(room), expected, f"the message with tag {number} of rank {rank}")


def _overtaking(process: RankProcess) -> None:
    comm, pml = _world(process), process.pml
    sizes = [300_001 if number % 7 == 3 else number for number in range(OUTSTANDING)]
    requests = []
    if comm.rank == 0:
        for number, size in enumerate(sizes):
            message = ContiguousConvertor(memoryview(content(0, number, size)))
            requests.append(pml.isend(comm, message, comm.size - 1, number, STANDARD))
    if comm.rank == comm.size - 1:
        for number, size in enumerate(sizes):
            room = GrowingConvertor()
            request = pml.recv(comm, room, ANY_SOURCE, ANY_TAG)
            assert request.tag == number, f"the message with tag {request.tag} overtook {number}"
            assert_same_bytes(
                _bytes(room), content(0, number, size), f"the message with tag {number}"
            )
    for request in requests:
        pml.wait(comm, request)
