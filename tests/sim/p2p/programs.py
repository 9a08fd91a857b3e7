"""Point-to-point programs of one rank each; they run in both worlds and check themselves."""

from __future__ import annotations

from functools import cache

from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.data.convertor import ContiguousConvertor, GrowingConvertor
from ompy.data.errors import ERR_PROC_FAILED, ERR_TRUNCATE, MPIError
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import STANDARD, SYNCHRONOUS
from ompy.runtime.ranks.process import RankProcess
from ompy_components.pml.ob1.headers import SEQUENCE_MASK

SIZES = (0, 1, 255, 256, 257, 4000, 4096, 4097, 65_536, 70_000, 1_000_003)
LAST_WORDS = (0, 8, 255, 4000)  # such as go at once, over sm and tcp


def world(process: RankProcess) -> Communicator:
    known = process.communicators.get(0)
    return known or process.communicator(0, process.context.procs, "WORLD")


def pattern(size: int, salt: int) -> bytes:
    """`size` bytes that differ by position and salt."""
    block = _block(salt)
    return (block * (size // len(block) + 1))[:size]


@cache
def _block(salt: int) -> bytes:
    return bytes((salt + index * 7) % 251 for index in range(4099))


def wind_on(comm: Communicator, number: int) -> None:
    """Have the messages of a communicator that nobody has used have numbers from this one on."""
    for rank in range(comm.size):
        queue = comm.pml_state.peer(rank)
        queue.sent, queue.expected = (number - 1) & SEQUENCE_MASK, number & SEQUENCE_MASK


def send(data: bytes) -> ContiguousConvertor:
    return ContiguousConvertor(memoryview(data))


def buffer(size: int) -> tuple[bytearray, ContiguousConvertor]:
    memory = bytearray(b"\xee" * size)
    return memory, ContiguousConvertor(memoryview(memory))


def ring(process: RankProcess) -> int:
    """Every size, to the next rank, in standard and synchronous mode."""
    comm, pml = world(process), process.pml
    target, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for size in SIZES:
        for mode in (STANDARD, SYNCHRONOUS):
            memory, room = buffer(size)
            receive = pml.irecv(comm, room, source, size)
            request = pml.isend(comm, send(pattern(size, comm.rank)), target, size, mode)
            pml.wait(comm, receive)
            pml.wait(comm, request)
            assert bytes(memory) == pattern(size, source), f"size {size}"
            assert (receive.source, receive.tag, receive.length) == (source, size, size)
    return comm.rank


def growing(process: RankProcess) -> None:
    """A receive that takes a message of any length."""
    comm, pml = world(process), process.pml
    for size in (0, 100, 3_000_000):
        if comm.rank == 0:
            pml.send(comm, send(pattern(size, 3)), 1, 0, STANDARD)
        elif comm.rank == 1:
            room = GrowingConvertor()
            pml.recv(comm, room, 0, 0)
            assert room.view is not None
            assert bytes(room.view) == pattern(size, 3)


def posted_order(process: RankProcess) -> list[list[int]]:
    """Of the receives that fit, the one posted first gets the message, wildcard or not."""
    comm, pml = world(process), process.pml
    if comm.rank == 1:
        pml.recv(comm, buffer(0)[1], 0, 99)  # rank 0 has posted everything
        for number in range(6):
            pml.send(comm, send(bytes([number])), 0, 5, STANDARD)
        return []
    if comm.rank != 0:
        return []
    wanted = [(1, 5), (ANY_SOURCE, 5), (1, ANY_TAG), (ANY_SOURCE, ANY_TAG), (1, 5), (ANY_SOURCE, 5)]
    rooms = [buffer(1) for _ in wanted]
    requests = [
        pml.irecv(comm, room, source, tag)
        for (source, tag), (_, room) in zip(wanted, rooms, strict=True)
    ]
    pml.send(comm, send(b""), 1, 99, STANDARD)
    for request in requests:
        pml.wait(comm, request)
    got = [memory[0] for memory, _ in rooms]
    assert got == list(range(6)), got
    return [got]


def unexpected_order(process: RankProcess) -> None:
    """Messages that came first are received first, by tag and by wildcard."""
    comm, pml = world(process), process.pml
    if comm.rank == 1:
        for number, tag in enumerate((3, 4, 3, 4, 7)):
            size = 100_000 if number == 2 else 1  # a rendezvous among eager ones
            pml.isend(comm, send(bytes([number]) * size), 0, tag, STANDARD)
        pml.recv(comm, buffer(0)[1], 0, 99)
    elif comm.rank == 0:
        pml.probe(comm, 1, 7)  # all five are here
        order = []
        for tag in (4, ANY_TAG, 3, ANY_TAG, ANY_TAG):
            room = GrowingConvertor()
            pml.recv(comm, room, ANY_SOURCE, tag)
            assert room.view is not None
            order.append(room.view[0])
        assert order == [1, 0, 2, 3, 4], order
        pml.send(comm, send(b""), 1, 99, STANDARD)


def internal_tags(process: RankProcess) -> None:
    """ANY_TAG never takes a message with a negative tag."""
    comm, pml = world(process), process.pml
    if comm.rank == 1:
        pml.send(comm, send(b"internal"), 0, -10, STANDARD)
        pml.send(comm, send(b"user"), 0, 10, STANDARD)
    elif comm.rank == 0:
        memory, room = buffer(8)
        first = pml.recv(comm, room, ANY_SOURCE, ANY_TAG)
        assert first.tag == 10, first.tag
        assert bytes(memory[:4]) == b"user"
        assert pml.iprobe(comm, ANY_SOURCE, ANY_TAG) is None
        assert pml.recv(comm, room, 1, -10).length == 8
        assert bytes(memory) == b"internal"


def truncation(process: RankProcess) -> None:
    """A message longer than the buffer: what fits is stored, nothing beyond it is touched."""
    comm, pml = world(process), process.pml
    for size in (10, 5000, 300_000):
        if comm.rank == 0:
            pml.send(comm, send(pattern(size, 1)), 1, 0, STANDARD)
        elif comm.rank == 1:
            memory = bytearray(b"\xee" * size)
            room = ContiguousConvertor(memoryview(memory)[: size // 2])
            try:
                pml.recv(comm, room, 0, 0)
            except MPIError as problem:
                assert problem.code == ERR_TRUNCATE
                assert str(size) in str(problem)
                assert str(size // 2) in str(problem)
            else:
                raise AssertionError("no error")
            assert memory[: size // 2] == pattern(size, 1)[: size // 2]
            assert memory[size // 2 :] == b"\xee" * (size - size // 2)
    # and the communicator is as good as before
    ring(process)


def probes(process: RankProcess) -> None:
    """Probe leaves a message where it is; a matched probe takes it away."""
    comm, pml = world(process), process.pml
    if comm.rank == 0:
        for size in (3, 60_000):
            pml.isend(comm, send(pattern(size, 2)), 1, 8, STANDARD)
            pml.isend(comm, send(pattern(size, 4)), 1, 8, STANDARD)
        pml.recv(comm, buffer(0)[1], 1, 9)
    elif comm.rank == 1:
        assert pml.iprobe(comm, 0, 77) is None
        for size in (3, 60_000):
            seen = pml.probe(comm, ANY_SOURCE, ANY_TAG)
            assert (seen.source, seen.tag, seen.length) == (0, 8, size)
            message = pml.mprobe(comm, 0, 8)
            assert message.length == size
            second = pml.mprobe(comm, 0, 8)
            for taken, salt in ((second, 4), (message, 2)):
                memory, room = buffer(size)
                pml.wait(comm, pml.imrecv(taken, room))
                assert bytes(memory) == pattern(size, salt)
        assert pml.improbe(comm, 0, ANY_TAG) is None
        pml.send(comm, send(b""), 0, 9, STANDARD)


def last_words(process: RankProcess) -> None:
    """What a rank sent before it left is found by those who look after that; more is an error."""
    comm, pml = world(process), process.pml
    if comm.rank:
        for size in LAST_WORDS:
            pml.isend(comm, send(pattern(size, comm.rank)), 0, 6, STANDARD)
        return
    others = range(1, comm.size)
    process.context.engine.wait_until(
        lambda: all(process.context.procs[rank].left for rank in others)
    )
    for rank in others:
        for size in LAST_WORDS:
            seen = pml.probe(comm, rank, ANY_TAG)
            assert (seen.source, seen.tag, seen.length) == (rank, 6, size)
            memory, room = buffer(size)
            pml.recv(comm, room, rank, 6)
            assert bytes(memory) == pattern(size, rank)
        assert pml.iprobe(comm, rank, ANY_TAG) is None
        for look in (pml.probe, pml.mprobe):
            try:
                look(comm, rank, ANY_TAG)
            except MPIError as problem:
                assert problem.code == ERR_PROC_FAILED, problem
            else:
                raise AssertionError("a probe for a rank that has left found something")


def cancelling(process: RankProcess) -> None:
    """A receive that is not matched can be cancelled, and takes no message afterwards."""
    comm, pml = world(process), process.pml
    other = (comm.rank + 1) % comm.size
    request = pml.irecv(comm, buffer(4)[1], ANY_SOURCE, 3)
    named = pml.irecv(comm, buffer(4)[1], other, 3)
    pml.cancel(request)
    pml.cancel(named)
    assert request.complete
    assert request.cancelled
    assert named.cancelled
    source = (comm.rank - 1) % comm.size
    memory, room = buffer(4)
    receive = pml.irecv(comm, room, source, 3)
    pml.wait(comm, pml.isend(comm, send(b"data"), other, 3, STANDARD))
    pml.wait(comm, receive)
    assert bytes(memory) == b"data"
    pml.cancel(receive)
    assert not receive.cancelled


def many_outstanding(process: RankProcess) -> int:
    """Hundreds of messages of mixed sizes under way at a time, to everybody."""
    comm, pml = world(process), process.pml
    count = 60
    sizes = [(1, 300, 5000, 20_000, 100_000)[number % 5] for number in range(count)]
    receives, sends = [], []
    for number, size in enumerate(sizes):
        for peer in range(comm.size):
            memory, room = buffer(size)
            receives.append((pml.irecv(comm, room, peer, number), memory, peer, number, size))
    for number, size in enumerate(sizes):
        for peer in range(comm.size):
            data = send(pattern(size, comm.rank + number))
            sends.append(pml.isend(comm, data, peer, number, STANDARD))
    for request, memory, peer, number, size in receives:
        pml.wait(comm, request)
        assert bytes(memory) == pattern(size, peer + number)
    for request in sends:
        pml.wait(comm, request)
    return len(receives)


def late_communicator(process: RankProcess) -> None:
    """Messages for a communicator that this rank has not made yet wait for it."""
    comm, pml = world(process), process.pml
    if comm.rank == 1:
        made = process.communicator(7, process.context.procs, "LATE")
        for number in range(3):
            pml.isend(made, send(bytes([number]) * (1 + 90_000 * number)), 0, number, STANDARD)
        pml.send(comm, send(b""), 0, 1, STANDARD)
        pml.recv(comm, buffer(0)[1], 0, 2)
    elif comm.rank == 0:
        pml.recv(comm, buffer(0)[1], 1, 1)
        made = process.communicator(7, process.context.procs, "LATE")
        for number in (2, 0, 1):
            room = GrowingConvertor()
            pml.recv(made, room, 1, number)
            assert room.view is not None
            assert bytes(room.view) == bytes([number]) * (1 + 90_000 * number)
        pml.send(comm, send(b""), 1, 2, STANDARD)


def synchronous_waits(process: RankProcess) -> None:
    """A synchronous send completes only when its receive is matched."""
    comm, pml = world(process), process.pml
    if comm.rank == 0:
        request = pml.isend(comm, send(b"sync"), 1, 1, SYNCHRONOUS)
        empty = pml.isend(comm, send(b""), 1, 2, SYNCHRONOUS)
        pml.recv(comm, buffer(0)[1], 1, 3)
        assert not request.complete
        assert not empty.complete
        pml.send(comm, send(b""), 1, 4, STANDARD)
        pml.wait(comm, request)
        pml.wait(comm, empty)
    elif comm.rank == 1:
        pml.probe(comm, 0, 1)
        pml.send(comm, send(b""), 0, 3, STANDARD)
        pml.recv(comm, buffer(0)[1], 0, 4)
        pml.recv(comm, buffer(4)[1], 0, 1)
        pml.recv(comm, buffer(0)[1], 0, 2)
