"""One message, and what the trace says of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ompy.data.buffered import BufferedConvertor
from ompy.data.convertor import ContiguousConvertor, Convertor, GatherConvertor
from ompy.data.errors import ERR_TRUNCATE
from ompy.frameworks.pml import BUFFERED, STANDARD, SYNCHRONOUS
from ompy.runtime.ranks.process import RankProcess

from tests.sim.p2p.programs import buffer, pattern, world


class ScatterConvertor(Convertor):
    """Room in two pieces: a receive that is not contiguous."""

    def __init__(self, memory: bytearray) -> None:
        self.view = None
        self.size = len(memory)
        self._memory = memory

    def unpack(self, offset: int, source: memoryview) -> int:
        count = max(0, min(self.size - offset, len(source)))
        self._memory[offset : offset + count] = source[:count]
        return count


def pieces(data: bytes) -> GatherConvertor:
    """A message that is not contiguous."""
    half = len(data) // 2
    return GatherConvertor([memoryview(data[:half]), memoryview(data[half:])])


def one_message(
    size: int,
    *,
    mode: int = STANDARD,
    gather: bool = False,
    scatter: bool = False,
) -> Callable[[RankProcess], Any]:
    """Rank 0 sends to rank 1, which checks every byte."""

    def program(process: RankProcess) -> None:
        comm, pml = world(process), process.pml
        if comm.rank == 0:
            data = bytearray(pattern(size, 1))
            convertor: Convertor = ContiguousConvertor(memoryview(data))
            if gather:
                convertor = pieces(bytes(data))
            if mode == BUFFERED:
                convertor = BufferedConvertor(convertor, lambda n: memoryview(bytearray(n)))
            request = pml.isend(comm, convertor, 1, 5, mode)
            if mode == BUFFERED:
                convertor.keep(0)  # as the floor above does
                data[:] = b"\xaa" * size  # the user's memory is free again
            pml.wait(comm, request)
        elif comm.rank == 1:
            memory, room = buffer(size)
            request = pml.recv(comm, ScatterConvertor(memory) if scatter else room, 0, 5)
            assert (request.received, request.length) == (size, size)
            assert bytes(memory) == pattern(size, 1)

    return program


def exchange(process: RankProcess) -> None:
    """Messages of many sizes and modes to every rank, all under way at once."""
    comm, pml = world(process), process.pml
    sizes = (0, 1, 300, 1000, 1001, 9000, 20_000, 20_001, 60_000)
    receives, sends = [], []
    for peer in range(comm.size):
        for tag, size in enumerate(sizes):
            memory, room = buffer(size)
            receives.append((pml.irecv(comm, room, peer, tag), memory, peer, size))
    for peer in range(comm.size):
        for tag, size in enumerate(sizes):
            mode = (STANDARD, SYNCHRONOUS, BUFFERED)[(tag + peer) % 3]
            convertor: Convertor = ContiguousConvertor(memoryview(pattern(size, comm.rank)))
            if mode == BUFFERED:
                convertor = BufferedConvertor(convertor, lambda n: memoryview(bytearray(n)))
            sends.append(pml.isend(comm, convertor, peer, tag, mode))
            convertor.keep(0)
    for request, memory, peer, size in receives:
        pml.wait(comm, request)
        assert bytes(memory) == pattern(size, peer)
    for request in sends:
        pml.wait(comm, request)


def truncated(process: RankProcess) -> None:
    """A large message into half the room: what fits is stored, nothing beyond it is touched."""
    comm, pml = world(process), process.pml
    if comm.rank == 0:
        pml.send(comm, ContiguousConvertor(memoryview(pattern(12_000, 1))), 1, 0, STANDARD)
        return
    memory, _ = buffer(12_000)
    request = pml.irecv(comm, ContiguousConvertor(memoryview(memory)[:6000]), 0, 0)
    process.context.engine.wait(request)
    assert request.error == ERR_TRUNCATE
    assert (request.received, request.length) == (6000, 12_000)
    assert memory[:6000] == pattern(12_000, 1)[:6000]
    assert memory[6000:] == b"\xee" * 6000


def steps(job: Any) -> list[str]:
    """The lettered steps in the order of time: whose, its letter, what."""
    found = []
    for event in job.events():
        values = dict(event.fields)
        if event.layer == "pml.ob1" and "step" in values:
            found.append(f"{values['side']} {values['step']} {event.name}")
    return found


def protocols(job: Any) -> list[str]:
    """What the sender chose and what the receiver made of it, or the eager protocol alone."""
    chosen = [dict(event.fields) for event in job.events() if event.name == "PROTOCOL"]
    return [str(values["protocol"]) for values in chosen]
