"""The parts of a window that its members have made of memory of their own, on one host.

Nobody can map such memory. So a member says where its part is in its process, and the others copy
between that and their own memory by the kernel, which asks nothing of the owner. What is combined
there is copied, combined and copied back, under the lock for accumulates that all of them take.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ompy import raw
from ompy.compiled import U64, U64View, ccall, cclass, cfunc
from ompy.data.convertor import Convertor, contiguous, scratch_memory
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.data.message import Message
from ompy.data.typemap import Block
from ompy.frameworks.collectives.shared_memory import finds_proof
from ompy.frameworks.osc import Place
from ompy.frameworks.osc_base.exposed import beyond_part
from ompy.net.base import LinkError
from ompy.net.memory.process_copy import ProcessCopy

WORD: Final = 8  # bytes; 64 bits, which x86 and aarch64 load and store at once
# of a member: its process and 1, or 0 for none; where its part is there; where it has the words
WORDS: Final = 3
# a place with gaps is read with them where they are no more than so many times its bytes: a call of
# the kernel takes as long as it copies some 4 KiB; arbitrary
GAPS: Final = 4


def room_for_parts(members: int) -> int:
    """Bytes of what members say of their parts."""
    return WORD * WORDS * members


@cclass
class LentParts:
    """The members' parts, as one of them reaches them.

    Attributes:
        by_address: their bytes are named by addresses of the members' processes.
        sizes: bytes of each part.
    """

    _copy: ProcessCopy
    _first: int
    _own: tuple[int, ...]
    _rank: int
    _words: U64View
    by_address: bool
    sizes: list[int]
    __slots__ = tuple(__annotations__)

    def __init__(
        self, copy: ProcessCopy, view: memoryview, first: int, rank: int, sizes: list[int]
    ) -> None:
        """The words in a byte view that begin at byte `first`, a multiple of 8; all 0 at first.

        Args:
            copy: between the members' processes.
            view: memory that all members have mapped.
            first: of its bytes.
            rank: of this member.
            sizes: bytes of each part.
        """
        self._copy = copy
        self._words = view.cast("Q")
        self._first = first // WORD
        self._rank = rank
        self._own = ()
        self.by_address = False
        self.sizes = sizes

    def lend(self, part: memoryview, view: memoryview) -> None:
        """Say where this member's part is, and the words, by which others know its process."""
        copy = self._copy
        self._own = copy.address_of(part) if len(part) else 0, copy.address_of(view)
        at = self._first + WORDS * self._rank
        self._words[at] = copy.identity + 1
        self._words[at + 1], self._words[at + 2] = self._own

    def withdraw(self) -> None:
        """This member's part may be anything from now on: nobody copies from it or to it."""
        self._words[self._first + WORDS * self._rank] = 0
        raw.fence()

    def can_read(self, members: int, proof: bytes) -> bool:
        """Whether this member may copy from all others, who have lent theirs.

        Args:
            members: how many there are.
            proof: what the memory of the words begins with.
        """
        for rank in range(members):
            if rank == self._rank:
                continue
            word = self._first + WORDS * rank
            if not self._words[word]:
                return False
            if not finds_proof(self._copy, self._process(rank), self._words[word + 2], proof):
                return False
        return True

    @ccall
    def covers(self, rank: int) -> bool:
        """Whether a member's part is to be reached by copies: any but this one's."""
        return rank != self._rank

    @ccall
    def find_bytes(self, rank: int, first: int, size: int) -> int:
        """Where bytes are, as the next two want it, that begin at one of a part; -1 if not all."""
        room: int = self.sizes[rank]
        return first if first >= 0 and first + size <= room else -1

    @ccall
    def load_bytes(self, rank: int, at: int, into: memoryview, size: int) -> None:
        """Copy the bytes of a part that begin at one of them.

        Args:
            rank: whose part.
            at: its byte; the caller has looked that all are in the part.
            into: bytes (format B) for them, at its beginning.
            size: how many.

        Raises:
            MPIError: ERR_PROC_FAILED, the member's memory is not there any more.
        """
        self._move(False, rank, at, into, size)

    @ccall
    def store_bytes(self, rank: int, at: int, data: memoryview, size: int) -> None:
        """Copy bytes to a part. Arguments and errors are those of `load_bytes`."""
        self._move(True, rank, at, data, size)

    @cfunc
    def _move(self, writes: bool, rank: int, at: int, view: memoryview, size: int) -> None:
        address: U64 = self._words[self._first + WORDS * rank + 1] + at
        if size != raw.size(view):
            view = view[:size]
        try:
            if writes:
                self._copy.write(self._process(rank), address, view)
            else:
                self._copy.read(self._process(rank), address, view)
        except LinkError as problem:
            detail = f"the memory of rank {rank} cannot be reached: {problem}"
            raise MPIError(ERR_PROC_FAILED, detail) from None

    @cfunc
    def _process(self, rank: int) -> int:
        """Of a member, for copies. Raises LinkError where it has none any more."""
        found: int = self._words[self._first + WORDS * rank]
        if not found:
            raise LinkError("it has finalized MPI")
        return found - 1

    def message(self, rank: int, place: Place) -> LentMessage:
        """The elements at a place of another member's part.

        Raises:
            MPIError: ERR_RMA_RANGE, some of them are not in it.
        """
        first, size = place.layout.span(place.number)
        first += place.displacement
        if size and self.find_bytes(rank, first, size) < 0:
            raise beyond_part(first, size, self.sizes[rank])
        return LentMessage(self, rank, place)

    def close(self) -> None:
        """Nobody copies from this member any more."""
        for address in self._own:
            self._copy.forget(address)
        self._own = ()
        self._words = memoryview(bytearray(room_for_parts(len(self.sizes)))).cast("Q")
        self._first = 0


class LentMessage(Message):
    """Elements in another member's part; its bytes come and go by copies."""

    __slots__ = ("_parts", "_rank")

    def __init__(self, parts: LentParts, rank: int, place: Place) -> None:
        super().__init__(memoryview(b""), place.displacement, place.number, place.layout)
        self._parts = parts
        self._rank = rank

    def place(self) -> int:
        """None in this process."""
        return -1

    def _start(self) -> int:
        """Where it lies in one piece in the part; -1 if it does not."""
        return Message.place(self)

    def convertor(self) -> Convertor:
        """Of a copy of its bytes."""
        return contiguous(memoryview(self.packed()))

    def packed(self) -> bytearray:
        """A packed copy of its bytes."""
        copy = bytearray(self.size)
        if not copy:
            return copy
        view, start = memoryview(copy), self._start()
        if start >= 0:
            self._parts.load_bytes(self._rank, start, view, len(copy))
            return copy
        first, size = self.layout.span(self.count)
        if size <= GAPS * len(copy):
            whole = scratch_memory(size)
            self._parts.load_bytes(self._rank, self.origin + first, whole, size)
            return Message(whole, -first, self.count, self.layout).packed()
        done = 0
        for at, length in self._pieces():
            self._parts.load_bytes(self._rank, at, view[done : done + length], length)
            done += length
        return copy

    def store(self, packed: memoryview | bytes | bytearray) -> None:
        """Copy bytes to where its elements are, and to no byte between."""
        view, start = memoryview(packed).cast("B"), self._start()
        if start >= 0:
            self._parts.store_bytes(self._rank, start, view, len(view))
            return
        done = 0
        for at, length in self._pieces():
            part = view[done : done + length]
            if not len(part):
                return
            self._parts.store_bytes(self._rank, at, part, len(part))
            done += length

    def _pieces(self) -> Iterator[Block]:
        """Byte of the part and length of each piece, in the order of packed bytes."""
        blocks = self.layout.blocks
        for number in range(self.count):
            origin = self.origin + number * self.layout.extent
            for at, length in blocks:
                yield origin + at, length
