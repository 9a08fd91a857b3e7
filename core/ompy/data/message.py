"""Messages: a count of elements in memory, alone or one block per rank."""

# ruff: noqa: SLF001 - who makes blocks without a constructor sets what they have

from __future__ import annotations

from collections.abc import Sequence

from ompy.compiled import ccall, cclass, recycled
from ompy.data.convertor import Convertor
from ompy.data.layout import Layout
from ompy.data.loops import pack_runs, unpack_runs


@recycled
@cclass
class Message:
    """`count` elements of `layout` in `memory`, the first at byte `origin`.

    Attributes:
        memory: byte view (format B, contiguous) of the user's buffer.
        origin: byte in it where the first element's origin is.
        count: elements.
        layout: of an element.
    """

    count: int
    layout: Layout
    memory: memoryview[int]
    origin: int
    __slots__ = tuple(__annotations__)

    def __init__(self, memory: memoryview, origin: int, count: int, layout: Layout) -> None:
        self.memory = memory
        self.origin = origin
        self.count = count
        self.layout = layout

    @property
    def size(self) -> int:
        """Packed bytes."""
        return self.count * self.layout.size

    @ccall
    def place(self) -> int:
        """Byte of the memory from which on the message lies in one piece; -1 if it does not."""
        layout = self.layout
        if layout.contiguous:
            return self.origin
        if layout.single is not None and (self.count == 1 or layout.extent == layout.size):
            return self.origin + layout.single[0]
        return -1

    @ccall
    def convertor(self) -> Convertor:
        """The message's bytes."""
        return self.layout.convertor(self.memory, self.origin, self.count)

    @ccall
    def pack_into(self, room: memoryview) -> None:
        """Copy the message's bytes, packed, to as many (format B)."""
        if not self.pack_at(room, 0):
            self.convertor().pack(0, room)

    @ccall
    def pack_at(self, room: memoryview, at: int) -> bool:
        """Copy all bytes, packed, to byte `at` (format B). False where a convertor has to do it."""
        runs = self.layout.elements().runs(self.count)
        return runs is not None and pack_runs(self.memory, self.origin, runs, room, at)

    @ccall
    def unpack_from(self, packed: memoryview, at: int, size: int) -> bool:
        """Take bytes from byte `at` on, what there is room for. False as for `pack_at`."""
        runs = self.layout.elements().runs(self.count)
        return runs is not None and unpack_runs(self.memory, self.origin, runs, packed, at, size)

    @ccall
    def packed(self) -> bytearray:
        """A packed copy of the message's bytes."""
        copy = bytearray(self.size)
        self.pack_into(memoryview(copy))
        return copy

    @ccall
    def store(self, packed: memoryview | bytes | bytearray) -> None:
        """Unpack bytes into the message; what there are of them."""
        view = memoryview(packed)
        if not self.unpack_from(view, 0, len(view)):
            self.convertor().unpack(0, view)

    def part(self, first: int, count: int) -> Message:
        """Elements `first` to `first + count`."""
        return Message(self.memory, self.origin + first * self.layout.extent, count, self.layout)


@ccall
def message_of(memory: memoryview, origin: int, count: int, layout: Layout) -> Message:
    """A message, made without a constructor's cost."""
    made: Message = Message.__new__(Message)
    made.memory = memory
    made.origin = origin
    made.count = count
    made.layout = layout
    return made


@recycled
@cclass
class Blocks:
    """One message per rank, all in one memory.

    Attributes:
        memory: byte view of the user's buffer.
        ranks: how many there are.
        regular: equal counts of one layout, side by side in rank order.
        must_fill: what comes has to fill each: a reduction would combine what was there before.
    """

    memory: memoryview[int]
    ranks: int
    regular: bool
    must_fill: bool
    # of equal parts, which have no lists until somebody asks for those
    _count: int
    _flat: bool
    _layout: Layout | None
    _origin: int
    _size: int
    _step: int
    # of any others
    _counts: list[int] | None
    _layouts: list[Layout] | None
    _origins: list[int] | None
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        memory: memoryview,
        counts: Sequence[int],
        origins: Sequence[int],
        layouts: Sequence[Layout],
        *,
        regular: bool = False,
    ) -> None:
        self.memory = memory
        self.ranks = len(counts)
        self.regular = regular
        self.must_fill = False
        self._count = self._origin = self._size = self._step = 0
        self._layout = None
        self._flat = False
        self._counts = list(counts)
        self._origins = list(origins)
        self._layouts = list(layouts)

    @classmethod
    def even(
        cls, memory: memoryview, origin: int, count: int, layout: Layout, ranks: int
    ) -> Blocks:
        """`count` elements for each of `ranks`, side by side from byte `origin`."""
        made: Blocks = equal_blocks(memory, origin, count, layout, ranks)
        return made

    @property
    def counts(self) -> list[int]:
        """Elements for each rank; a list of its own for who asks."""
        return [self._count] * self.ranks if self._counts is None else self._counts

    @property
    def origins(self) -> list[int]:
        """Byte where each rank's first element is; likewise."""
        if self._origins is not None:
            return self._origins
        return [self._origin + rank * self._step for rank in range(self.ranks)]

    @property
    def layouts(self) -> list[Layout]:
        """Of each rank's elements; likewise."""
        if self._layouts is not None:
            return self._layouts
        assert self._layout is not None, "equal parts have one"
        return [self._layout] * self.ranks

    def __len__(self) -> int:
        return self.ranks

    def __getitem__(self, rank: int) -> Message:
        return self.block(rank)

    @ccall
    def block(self, rank: int) -> Message:
        """The message of one rank.

        Raises:
            IndexError: there is no such rank.
        """
        if not 0 <= rank < self.ranks:
            raise IndexError(f"there are {self.ranks} blocks, none of rank {rank}")
        layout = self._layout
        if layout is not None:
            return message_of(self.memory, self._origin + rank * self._step, self._count, layout)
        counts, origins, layouts = self._counts, self._origins, self._layouts
        assert counts is not None, "they are no equal parts"
        assert origins is not None, "likewise"
        assert layouts is not None, "likewise"
        return message_of(self.memory, origins[rank], counts[rank], layouts[rank])

    @ccall
    def room(self, rank: int) -> int:
        """Packed bytes of one rank's message."""
        if self._layout is not None:
            return self._size
        counts, layouts = self._counts, self._layouts
        assert counts is not None, "they are no equal parts"
        assert layouts is not None, "likewise"
        layout: Layout = layouts[rank]
        return counts[rank] * layout.size

    @ccall
    def each(self) -> int:
        """Packed bytes of every rank's message, if they are as long as each other; else -1."""
        if self._layout is not None:
            return self._size
        rank: int
        size: int = self.room(0) if self.ranks else 0
        for rank in range(1, self.ranks):
            if self.room(rank) != size:
                return -1
        return size

    @ccall
    def place(self, rank: int) -> int:
        """Byte of the memory from which on one rank's message lies in one piece.

        -1 if its layout has gaps: the `place` of the message itself may still find one.
        """
        if self._flat:
            return self._origin + rank * self._step
        layouts, origins = self._layouts, self._origins
        if layouts is None or origins is None:
            return -1
        layout: Layout = layouts[rank]
        return origins[rank] if layout.contiguous else -1

    @ccall
    def fits(self, message: Message) -> bool:
        """Whether a message has as many bytes as each of equal parts."""
        return self._layout is not None and message.count * message.layout.size == self._size

    def whole(self) -> Message:
        """All blocks as one message; only for regular ones."""
        assert self.regular, "only regular blocks are one message"
        first: Message = self.block(0)
        return Message(self.memory, first.origin, first.count * self.ranks, first.layout)


@ccall
def blocks_from(
    memory: memoryview,
    counts: list[int],
    origins: list[int],
    layouts: list[Layout],
    regular: bool,
) -> Blocks:
    """Blocks, made without a constructor's cost; the lists are theirs from now on."""
    made: Blocks = Blocks.__new__(Blocks)
    made.memory = memory
    made.ranks = len(counts)
    made.regular = regular
    made.must_fill = False
    made._count = made._origin = made._size = made._step = 0
    made._layout = None
    made._flat = False
    made._counts = counts
    made._origins = origins
    made._layouts = layouts
    return made


@ccall
def equal_blocks(memory: memoryview, origin: int, count: int, layout: Layout, ranks: int) -> Blocks:
    """Equal parts, made without a constructor's cost.

    Args:
        memory: byte view of the user's buffer.
        origin: byte where the first one's first element is.
        count: elements of each.
        layout: of an element.
        ranks: how many.
    """
    made: Blocks = Blocks.__new__(Blocks)
    made.memory = memory
    made.ranks = ranks
    made.regular = True
    made.must_fill = False
    made._count = count
    made._layout = layout
    made._origin = origin
    made._size = count * layout.size
    made._step = count * layout.extent
    made._flat = layout.contiguous
    made._counts = made._origins = made._layouts = None
    return made


@ccall
def parted(message: Message, ranks: int) -> Blocks | None:
    """Equal parts of a message, one for each rank; None if it has no such parts."""
    count: int = message.count // ranks
    if count * ranks != message.count:
        return None
    return equal_blocks(message.memory, message.origin, count, message.layout, ranks)
