"""Layouts: where the bytes of one element of a datatype lie.

A layout is immutable. The datatype handles of the API are names for layouts; the PML and the
collectives see layouts and messages only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ompy.data.convertor import ContiguousConvertor, Convertor

Block = tuple[int, int]  # displacement from the element's origin and length, in bytes


class Layout:
    """The type map of one element.

    Attributes:
        size: bytes of data in one element.
        lower: lower bound, bytes from the origin; may be negative.
        extent: bytes from one element to the next.
        blocks: pieces in the order they are packed, adjacent ones merged.
        format: what the data are when they are all of one kind: NumPy's type character
            (`b h i l q B H I L Q f d g ? F D G`), `x` for MPI_BYTE, `c` for characters, two
            characters for a value and its index (`fi di li ii hi gi`, packed without gap);
            "" for mixtures. What predefined operations work on.
        contiguous: elements lie side by side without gaps, from the origin.
    """

    __slots__ = ("blocks", "contiguous", "extent", "format", "lower", "size")

    def __init__(
        self,
        blocks: Iterable[Block],
        lower: int,
        extent: int,
        format: str = "",  # noqa: A002
    ) -> None:
        self.blocks = _merge(blocks)
        self.size = sum(length for _, length in self.blocks)
        self.lower = lower
        self.extent = extent
        self.format = format
        one_piece = len(self.blocks) <= 1 and (not self.blocks or self.blocks[0][0] == 0)
        self.contiguous = one_piece and lower == 0 and extent == self.size

    @property
    def true_lower(self) -> int:
        """Least displacement of a data byte."""
        return min((start for start, _ in self.blocks), default=0)

    @property
    def true_extent(self) -> int:
        """Bytes from the first data byte to the last."""
        end = max((start + length for start, length in self.blocks), default=0)
        return end - self.true_lower

    def span(self, count: int) -> Block:
        """First byte, from the origin, and number of bytes that `count` elements touch."""
        if count <= 0 or not self.blocks:
            return (0, 0)
        reach = (count - 1) * self.extent
        first = self.true_lower + min(0, reach)
        last = self.true_lower + self.true_extent + max(0, reach)
        return (first, last - first)

    def convertor(self, memory: memoryview, origin: int, count: int) -> Convertor:
        """The bytes of `count` elements in `memory` (format B), the first at byte `origin`."""
        if self.contiguous:
            return ContiguousConvertor(memory[origin : origin + count * self.size])
        from ompy.data.strided import StridedConvertor

        return StridedConvertor(memory, origin, count, self)


def repeat(layout: Layout, displacements: Sequence[int]) -> Layout:
    """One element of `layout` at each of `displacements` (bytes): the type all others are made of.

    The extent spans from the least lower bound to the greatest upper bound.
    """
    return combine([(displacement, layout) for displacement in displacements])


def combine(parts: Sequence[tuple[int, Layout]]) -> Layout:
    """Elements of several layouts at byte displacements, packed in the order given."""
    blocks = [(at + start, length) for at, part in parts for start, length in part.blocks]
    lower = min((at + part.lower for at, part in parts), default=0)
    upper = max((at + part.lower + part.extent for at, part in parts), default=0)
    formats = {part.format for _, part in parts}
    return Layout(blocks, lower, upper - lower, formats.pop() if len(formats) == 1 else "")


def resize(layout: Layout, lower: int, extent: int) -> Layout:
    """The same data with other bounds."""
    return Layout(layout.blocks, lower, extent, layout.format)


def _merge(blocks: Iterable[Block]) -> tuple[Block, ...]:
    merged: list[Block] = []
    for start, length in blocks:
        if length == 0:
            continue
        if merged and merged[-1][0] + merged[-1][1] == start:
            merged[-1] = (merged[-1][0], merged[-1][1] + length)
        else:
            merged.append((start, length))
    return tuple(merged)


BYTES = Layout(((0, 1),), 0, 1)
