"""The parts of a window that its members have made of memory of their own, on one host.

Nobody can map such memory. So a member says where its part is in its process, and the others copy
between that and their own memory by the kernel, which asks nothing of the owner. What is combined
there is copied, combined and copied back, under the lock for accumulates that all of them take.
"""

# ruff: noqa: SLF001 - what is made without `__init__` is set up by a function of this module

from __future__ import annotations

from typing import Final

from ompy import raw
from ompy.compiled import U64, U64View, ccall, cclass, cfunc
from ompy.data.convertor import Convertor, contiguous, scratch_memory
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.data.layout import Layout
from ompy.data.loops import Runs
from ompy.data.message import Message
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
_NOWHERE: Final = memoryview(b"")


def room_for_parts(members: int) -> int:
    """Bytes of what members say of their parts."""
    return WORD * WORDS * members


@cclass
class Piece:
    """A piece of this member's own memory that others reach.

    Attributes:
        first: number of its first byte, as `find_bytes` gives it to them.
        memory: the piece, in format B.
    """

    first: U64
    memory: memoryview[int]
    __slots__ = tuple(__annotations__)

    def __init__(self, first: U64, memory: memoryview) -> None:
        self.first = first
        self.memory = memory


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
    _piece: Piece
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
        self._piece = Piece(0, _NOWHERE)
        self.by_address = False
        self.sizes = sizes

    def lend(self, part: memoryview, view: memoryview) -> None:
        """Say where this member's part is, and the words, by which others know its process."""
        copy = self._copy
        self._own = copy.address_of(part) if len(part) else 0, copy.address_of(view)
        at = self._first + WORDS * self._rank
        self._words[at] = copy.identity + 1
        self._words[at + 1], self._words[at + 2] = self._own
        self._piece = Piece(0, part)

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
    def own_piece(self, at: U64, size: int) -> Piece | None:
        """The piece of this member's that has bytes which another one's `find_bytes` found."""
        piece: Piece = self._piece
        return piece if at + size <= raw.size(piece.memory) else None

    @ccall
    def reach(self, rank: int) -> None:
        """See whether a member's memory is there. Raises MPIError as `load_bytes` does."""
        word = memoryview(bytearray(WORD))
        try:
            place: U64 = self._words[self._first + WORDS * rank + 2]
            self._copy.read(self._process(rank), place, word)
        except LinkError as problem:
            raise _unreachable(rank, problem) from None

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
            raise _unreachable(rank, problem) from None

    @ccall
    def load_runs(self, rank: int, at: int, runs: Runs, into: memoryview) -> None:
        """Copy elements with gaps of a part.

        Args:
            rank: whose part.
            at: the byte of the first element's origin; the caller has looked that all are in it.
            runs: where their bytes are.
            into: for these, packed, in format B; as many.

        Raises:
            MPIError: ERR_PROC_FAILED, the member's memory is not there any more.
        """
        self._move_runs(False, rank, at, runs, into)

    @ccall
    def store_runs(self, rank: int, at: int, runs: Runs, data: memoryview) -> None:
        """Copy packed bytes to elements with gaps. Arguments and errors are as of `load_runs`."""
        self._move_runs(True, rank, at, runs, data)

    @cfunc
    def _move_runs(self, writes: bool, rank: int, at: int, runs: Runs, view: memoryview) -> None:
        address: U64 = self._words[self._first + WORDS * rank + 1] + at
        try:
            if writes:
                self._copy.write_runs(self._process(rank), address, runs, view)
            else:
                self._copy.read_runs(self._process(rank), address, runs, view)
        except LinkError as problem:
            raise _unreachable(rank, problem) from None

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
        return lent_message(self, rank, place.displacement, place.number, place.layout)

    def close(self) -> None:
        """Nobody copies from this member any more."""
        for address in self._own:
            self._copy.forget(address)
        self._own = ()
        self._piece = Piece(0, _NOWHERE)
        self._words = memoryview(bytearray(room_for_parts(len(self.sizes)))).cast("Q")
        self._first = 0


def _unreachable(rank: int, problem: LinkError) -> MPIError:
    detail = f"the memory of rank {rank} cannot be reached: {problem}"
    return MPIError(ERR_PROC_FAILED, detail)


@cclass
class LentMessage(Message):
    """Elements in another member's part; its bytes come and go by copies."""

    _parts: LentParts
    _rank: int
    __slots__ = tuple(__annotations__)

    @ccall
    def place(self) -> int:
        """None in this process."""
        return -1

    @cfunc
    def _start(self) -> int:
        """Where it lies in one piece in the part; -1 if it does not."""
        return Message.place(self)

    @ccall
    def convertor(self) -> Convertor:
        """Of a copy of its bytes."""
        return contiguous(memoryview(self.packed()))

    @ccall
    def pack_into(self, room: memoryview) -> None:
        """Copy its bytes, packed."""
        size: int = self.count * self.layout.size
        if not size:
            return
        start: int = self._start()
        if start >= 0:
            self._parts.load_bytes(self._rank, start, room, size)
            return
        first, span = self.layout.span(self.count)
        runs = self.layout.elements().runs(self.count)
        if runs is None or span <= GAPS * size:
            whole = scratch_memory(span)
            self._parts.load_bytes(self._rank, self.origin + first, whole, span)
            Message(whole, -first, self.count, self.layout).pack_into(room)
            return
        self._parts.load_runs(self._rank, self.origin, runs, room)

    @ccall
    def store(self, packed: memoryview | bytes | bytearray) -> None:
        """Copy bytes to where its elements are, and to no byte between.

        Of fewer bytes than it has, those come first.
        """
        view = memoryview(packed)
        if not raw.size(view):
            return
        start: int = self._start()
        if start >= 0:
            self._parts.store_bytes(self._rank, start, view, raw.size(view))
            return
        runs = self.layout.elements().runs(self.count)
        if runs is not None:
            self._parts.store_runs(self._rank, self.origin, runs, view)
            return
        self._store_pieces(view)

    def _store_pieces(self, view: memoryview) -> None:
        """One by one, where there are too many for a table of them."""
        done = 0
        for number in range(self.count):
            origin = self.origin + number * self.layout.extent
            for at, length in self.layout.node.blocks(self.layout.displacement):
                part = view[done : done + length]
                if not len(part):
                    return
                self._parts.store_bytes(self._rank, origin + at, part, len(part))
                done += length


@ccall
def lent_message(
    parts: LentParts, rank: int, origin: int, count: int, layout: Layout
) -> LentMessage:
    """Elements in a member's part, the first at byte `origin`; the caller knows that all are."""
    made: LentMessage = LentMessage.__new__(LentMessage)
    made.memory = _NOWHERE
    made.origin = origin
    made.count = count
    made.layout = layout
    made._parts = parts
    made._rank = rank
    return made
