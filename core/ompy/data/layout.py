"""Layouts: where the bytes of one element of a datatype lie.

A layout is immutable. The datatype handles of the API are names for layouts; the PML and the
collectives see layouts and messages only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ompy.compiled import ccall, cclass
from ompy.data.convertor import ContiguousConvertor, Convertor
from ompy.data.loops import Elements, convertor_of_runs
from ompy.data.typemap import Block, Node, Run, loop, runs, sequence

ADDRESSES: Final = 1 << 62  # bytes; arbitrary: more than memory has, and no overflow in C


@cclass
class Layout:
    """The type map of one element.

    Attributes:
        size: bytes of data in one element.
        lower: lower bound, bytes from the origin; may be negative.
        extent: bytes from one element to the next.
        format: what the data are when they are all of one kind: NumPy's type character
            (`b h i l q B H I L Q e f d g ? F D G`), `x` for MPI_BYTE, `c` for characters, two
            characters for a value and its index (`fi di li ii hi gi`, packed without gap);
            "" for mixtures. What predefined operations work on.
        contiguous: elements lie side by side without gaps, from the origin.
        single: displacement and length of the data when they are in one piece, else None.
        node: the tree of the data.
        displacement: of `node`.
    """

    _elements: Elements | None
    contiguous: bool
    displacement: int
    extent: int
    format: str
    lower: int
    node: Node
    single: Block | None
    size: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        blocks: Iterable[Block],
        lower: int,
        extent: int,
        format: str = "",  # noqa: A002
    ) -> None:
        """Describe an element by its pieces, in the order they are packed."""
        self.describe(runs(blocks), lower, extent, format)

    @classmethod
    def of(cls, placed: tuple[int, Node], lower: int, extent: int, kind: str) -> Layout:
        """The layout of a node at a displacement, with bounds and a format."""
        made: Layout = cls.__new__(cls)
        made.describe(placed, lower, extent, kind)
        return made

    def describe(self, placed: tuple[int, Node], lower: int, extent: int, kind: str) -> None:
        """Set everything; for the two constructors."""
        self.displacement, self.node = placed
        self.size = self.node.size
        self.lower = lower
        self.extent = extent
        self.format = kind
        self._elements = None
        one_piece = isinstance(self.node, Run)
        self.single = (self.displacement, self.size) if one_piece else None
        self.contiguous = (
            one_piece
            and (self.displacement == 0 or not self.size)
            and lower == 0
            and extent == self.size
        )

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The pieces one by one, in the order they are packed. For small types and tests."""
        return tuple(self.node.blocks(self.displacement))

    @property
    def true_lower(self) -> int:
        """Least displacement of a data byte."""
        return self.displacement + self.node.low if self.size else 0

    @property
    def true_extent(self) -> int:
        """Bytes from the first data byte to the last."""
        return self.node.high - self.node.low

    @ccall
    def true_bounds(self) -> Block:
        """`true_lower` and `true_extent`."""
        node = self.node
        return (self.displacement + node.low if self.size else 0, node.high - node.low)

    @ccall
    def span(self, count: int) -> Block:
        """First byte, from the origin, and number of bytes that `count` elements touch.

        Raises:
            ValueError: they reach further than there are addresses.
        """
        if count <= 0 or not self.size:
            return (0, 0)
        if count > ADDRESSES // max(self.size, abs(self.extent)):
            raise ValueError(f"message: {count} elements of {self.size} bytes are beyond memory")
        if self.contiguous:
            return (0, count * self.size)
        reach = (count - 1) * self.extent
        first = self.true_lower + min(0, reach)
        last = self.true_lower + self.true_extent + max(0, reach)
        return (first, last - first)

    @ccall
    def elements(self) -> Elements:
        """Elements of it, as the loops in C take them."""
        found = self._elements
        if found is None:
            found = self._elements = Elements(self.displacement, self.node, self.extent)
        return found

    @ccall
    def convertor(self, memory: memoryview, origin: int, count: int) -> Convertor:
        """The bytes of `count` elements in `memory` (format B), the first at byte `origin`."""
        if self.contiguous:
            return ContiguousConvertor(memory[origin : origin + count * self.size])
        start = origin + self.displacement
        runs = self.elements().runs(count)
        if runs is not None and runs.length < runs.size:
            made = convertor_of_runs(memory, origin, runs, False)
            if made is not None:
                return made
        node = loop(count, self.extent, self.node)
        if isinstance(node, Run):  # one piece that begins elsewhere
            return ContiguousConvertor(memory[start : start + node.size])
        from ompy.data.strided import StridedConvertor

        return StridedConvertor(memory, start, node)


def strided(layout: Layout, count: int, stride: int) -> Layout:
    """`count` elements, `stride` bytes apart; the extent spans from the first to the last."""
    reach = (count - 1) * stride if count else 0
    lower, upper = min(0, reach) + layout.lower, max(0, reach) + layout.lower + layout.extent
    if not count:
        lower = upper = 0
    placed = layout.displacement, loop(count, stride, layout.node)
    return Layout.of(placed, lower, upper - lower, layout.format if count else "")


def repeat_layout(layout: Layout, displacements: Sequence[int]) -> Layout:
    """One element of `layout` at each of `displacements` (bytes): the type all others are made of.

    The extent spans from the least lower bound to the greatest upper bound.
    """
    return combine_layouts([(displacement, layout) for displacement in displacements])


def bounds_of(parts: Sequence[tuple[int, Layout]]) -> tuple[int, int]:
    """The least lower bound of layouts at byte displacements; the extent to the greatest upper."""
    lower = min((at + part.lower for at, part in parts), default=0)
    upper = max((at + part.lower + part.extent for at, part in parts), default=0)
    return lower, upper - lower


def combine_layouts(parts: Sequence[tuple[int, Layout]]) -> Layout:
    """Elements of several layouts at byte displacements, packed in the order given."""
    lower, extent = bounds_of(parts)
    formats = {part.format for _, part in parts}
    placed = sequence((at + part.displacement, part.node) for at, part in parts)
    return Layout.of(placed, lower, extent, formats.pop() if len(formats) == 1 else "")


def resize(layout: Layout, lower: int, extent: int) -> Layout:
    """The same data with other bounds."""
    return Layout.of((layout.displacement, layout.node), lower, extent, layout.format)


BYTES: Final = Layout(((0, 1),), 0, 1)
