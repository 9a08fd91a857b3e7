"""Messages of more than 2 and 4 GiB: lengths and offsets beyond 32 bits, without the memory.

The sender makes up the beginning of every fragment from its offset, the receiver checks it. The
BTL carries fragments of full size.
"""

from __future__ import annotations

from collections.abc import Iterator

from ompy.data.convertor import Convertor
from ompy.frameworks.pml import STANDARD, SYNCHRONOUS
from ompy.runtime.ranks.process import RankProcess

from tests.sim.p2p.programs import world
from tests.support.effort import THOROUGH
from tests.support.worlds import virtual

GIB = 1 << 30
STAMP = 8  # bytes of an offset at the beginning of a fragment
SIZES = [2 * GIB + 3, 4 * GIB + 5] if THOROUGH else [4 * GIB + 5]


class Endless(Convertor):
    """Bytes that are nowhere: fragments begin with their own offset."""

    __slots__ = ("end", "spans")

    def __init__(self, size: int) -> None:
        self.view = None
        self.size = size
        self.spans: list[tuple[int, int]] = []

    def pack(self, offset: int, target: memoryview) -> int:
        count = min(self.size - offset, len(target))
        stamp = offset.to_bytes(STAMP, "little")[:count]
        target[: len(stamp)] = stamp
        return count

    def unpack(self, offset: int, source: memoryview) -> int:
        count = min(self.size - offset, len(source))
        assert bytes(source[:STAMP]) == offset.to_bytes(STAMP, "little")[:count]
        self.spans.append((offset, count))
        return count


def gaps(spans: list[tuple[int, int]], size: int) -> Iterator[int]:
    """Where a fragment does not begin where the one before it ended."""
    end = 0
    for offset, count in sorted(spans):
        if offset != end:
            yield offset
        end = offset + count
    if end != size:
        yield end


def program(process: RankProcess) -> None:
    comm, pml = world(process), process.pml
    for size in SIZES:
        for mode in (STANDARD, SYNCHRONOUS) if THOROUGH else (STANDARD,):
            if comm.rank == 0:
                pml.send(comm, Endless(size), 1, 1, mode)
            else:
                room = Endless(size)
                assert pml.probe(comm, 0, 1).length == size
                done = pml.recv(comm, room, 0, 1)
                assert (done.length, done.received) == (size, size)
                assert not list(gaps(room.spans, size))


def test_beyond_four_gib() -> None:
    # large fragments, so fewer of them: this is about numbers
    virtual(2, program, btl="self,sm", btl_sm_max_send_size=1 << 22)
