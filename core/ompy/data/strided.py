"""Convertor for layouts with gaps: packs and unpacks piece by piece, at any byte offset."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ompy.data.convertor import Convertor

if TYPE_CHECKING:
    from ompy.data.layout import Layout


class StridedConvertor(Convertor):
    """`count` elements of a layout, the first at byte `origin` of `memory`."""

    __slots__ = ("_layout", "_memory", "_origin", "_starts")

    def __init__(self, memory: memoryview, origin: int, count: int, layout: Layout) -> None:
        self.view = None
        self.size = count * layout.size
        self._memory = memory
        self._origin = origin
        self._layout = layout
        self._starts: list[int] = []  # packed offset of each block within one element
        packed = 0
        for _, length in layout.blocks:
            self._starts.append(packed)
            packed += length

    def pack(self, offset: int, target: memoryview) -> int:
        """Gather from the pieces."""
        done = 0
        for begin, count in self._pieces(offset, len(target)):
            target[done : done + count] = self._memory[begin : begin + count]
            done += count
        return done

    def unpack(self, offset: int, source: memoryview) -> int:
        """Scatter to the pieces."""
        done = 0
        for begin, count in self._pieces(offset, len(source)):
            self._memory[begin : begin + count] = source[done : done + count]
            done += count
        return done

    def _pieces(self, offset: int, wanted: int) -> Iterator[tuple[int, int]]:
        """Memory pieces (first byte, length) of `wanted` packed bytes from `offset` on."""
        layout = self._layout
        wanted = min(wanted, self.size - offset)
        while wanted > 0:
            element, within = divmod(offset, layout.size)
            index = bisect_right(self._starts, within) - 1
            base = self._origin + element * layout.extent
            while wanted > 0 and index < len(layout.blocks):
                start, length = layout.blocks[index]
                skip = within - self._starts[index]
                count = min(length - skip, wanted)
                yield base + start + skip, count
                offset += count
                within += count
                wanted -= count
                index += 1
