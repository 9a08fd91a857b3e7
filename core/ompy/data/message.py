"""Messages: a count of elements in memory, alone or one block per rank."""

from __future__ import annotations

from collections.abc import Sequence

from ompy.compiled import ccall, cclass
from ompy.data.convertor import Convertor
from ompy.data.layout import Layout


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
    def packed(self) -> bytearray:
        """A packed copy of the message's bytes."""
        copy = bytearray(self.size)
        self.convertor().pack(0, memoryview(copy))
        return copy

    @ccall
    def store(self, packed: memoryview | bytes | bytearray) -> None:
        """Unpack bytes into the message."""
        self.convertor().unpack(0, memoryview(packed))

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


@cclass
class Blocks:
    """One message per rank, all in one memory.

    Attributes:
        memory: byte view of the user's buffer.
        counts: elements for each rank.
        origins: byte where each rank's first element is.
        layouts: of each rank's elements.
        regular: equal counts of one layout, side by side in rank order.
    """

    counts: list[int]
    layouts: list[Layout]
    memory: memoryview[int]
    origins: list[int]
    regular: bool
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
        self.counts = list(counts)
        self.origins = list(origins)
        self.layouts = list(layouts)
        self.regular = regular

    @classmethod
    def even(
        cls, memory: memoryview, origin: int, count: int, layout: Layout, ranks: int
    ) -> Blocks:
        """`count` elements for each of `ranks`, side by side from byte `origin`."""
        step = count * layout.extent
        origins = [origin + rank * step for rank in range(ranks)]
        return cls(memory, [count] * ranks, origins, [layout] * ranks, regular=True)

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, rank: int) -> Message:
        return self.block(rank)

    @ccall
    def block(self, rank: int) -> Message:
        """The message of one rank."""
        return message_of(self.memory, self.origins[rank], self.counts[rank], self.layouts[rank])

    def whole(self) -> Message:
        """All blocks as one message; only for regular ones."""
        assert self.regular, "only regular blocks are one message"
        count = self.counts[0] * len(self.counts) if self.counts else 0
        return Message(self.memory, self.origins[0], count, self.layouts[0])


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
    made.counts = counts
    made.origins = origins
    made.layouts = layouts
    made.regular = regular
    return made


@ccall
def parted(message: Message, ranks: int) -> Blocks | None:
    """Equal parts of a message, one for each rank; None if it has no such parts."""
    count: int = message.count // ranks
    if count * ranks != message.count:
        return None
    layout = message.layout
    step: int = count * layout.extent
    origins = [message.origin + rank * step for rank in range(ranks)]
    return blocks_from(message.memory, [count] * ranks, origins, [layout] * ranks, True)
