"""Views: which bytes of a file a rank sees, and in which order.

A view is a filetype's type map, put at a displacement and repeated without end. Its *positions*
count the bytes that are seen, from 0 on; a view says where in the file each of them is.

In an *ordered* view later positions are further on in the file, and none is there twice. MPI asks
that of every filetype that is written through; two-phase access asks it of all.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from struct import Struct
from typing import Any, Final

from ompy.compiled import ccall, cclass, cfunc
from ompy.data.layout import BYTES, Layout
from ompy.data.loops import Runs, gather_part, scatter_part
from ompy.data.strided import StridedConvertor
from ompy.data.typemap import Block, Loop, Node, Run, Scattered, Series, loop
from ompy.frameworks.osc_base.layouts import decode_layout, encode_layout

_DISPLACEMENT: Final = Struct("<q")
Place = tuple[int, int, int]  # of a run: byte in the file, position from where one counts, length


@cclass
class FileView:
    """What a rank sees of a file.

    Attributes:
        displacement: byte of the file where the first filetype is put.
        layout: of a filetype in the file.
        size: bytes that are seen of each filetype.
        contiguous: every byte from `displacement` on is seen.
        ordered: later positions are further on in the file.
        run: average length of the runs that are seen.
    """

    _base: int
    _extent: int
    _node: Any
    _one: Runs | None  # of one filetype
    _single: bool
    contiguous: bool
    displacement: int
    layout: Layout
    ordered: bool
    run: int
    size: int
    __slots__ = tuple(__annotations__)

    def __init__(self, displacement: int, layout: Layout) -> None:
        self.displacement = displacement
        self.layout = layout
        self.size = layout.size
        self._node = layout.node
        self._base = displacement + layout.displacement
        self._extent = layout.extent
        self._single = isinstance(layout.node, Run)
        self._one = layout.elements().runs(1)
        self.contiguous = bool(self._single and layout.size and layout.extent == layout.size)
        span = layout.node.high - layout.node.low
        self.ordered = span <= layout.extent and _is_ordered(layout.node)
        self.run = layout.size // max(1, _number_of_runs(layout.node))

    def to_bytes(self) -> bytes:
        """The view, for other ranks."""
        return _DISPLACEMENT.pack(self.displacement) + encode_layout(self.layout)

    @classmethod
    def from_bytes(cls, data: bytes) -> FileView:
        """The view that `to_bytes` was called of.

        Raises:
            MPIError: ERR_TYPE, these are no such bytes.
        """
        (displacement,) = _DISPLACEMENT.unpack_from(data)
        return cls(displacement, decode_layout(memoryview(data)[_DISPLACEMENT.size :]))

    @ccall
    def piece_at(self, position: int, size: int) -> int:
        """Where in the file so many bytes are from a position on; -1 if in more than one piece.

        Where filetypes have more pieces than one that is not looked for.
        """
        if self.contiguous:
            return self._base + position
        if not self._single or not self.size:
            return -1
        tile: int = position // self.size
        rest: int = position - tile * self.size
        return self._base + tile * self._extent + rest if rest + size <= self.size else -1

    @ccall
    def byte_at(self, position: int) -> int:
        """Where in the file a position is."""
        if self.contiguous:
            return self._base + position
        rest: int = position % self.size
        one: Runs | None = self._one
        if one is not None:
            return self._tile(position) + one.byte_at(rest)
        return self._tile(position) + self.layout.displacement + _place_in(self._node, rest)

    def position_at(self, byte: int) -> int:
        """How many bytes before this one of the file are seen, in an ordered view."""
        low = self._node.low
        tile = (byte - self._base - low) // self._extent
        if tile < 0 or byte < self._base + low:
            return 0
        inside = byte - self._base - tile * self._extent
        seen: int = _seen_before(self._node, inside)
        found: int = tile * self.size + seen
        return found

    def period(self, begin: int, end: int) -> int:
        """After how many bytes what is seen repeats, from one position to before another.

        It does so for every byte from that of the first position to that of the last one, in an
        ordered view.
        """
        if self.contiguous:
            return 1
        node = self._node
        if isinstance(node, Loop) and begin // self.size == (end - 1) // self.size:
            return node.stride
        return self._extent

    @cfunc
    def _tile(self, position: int) -> int:
        """Where the filetype begins that a position is in."""
        return self.displacement + position // self.size * self._extent

    @cfunc
    def _runs_of(self, piece: memoryview, first: int, begin: int, size: int) -> Runs | None:
        """Where the filetypes' bytes are that positions of a piece are of; None if not all are."""
        if not self.ordered or size <= 0 or self.byte_at(begin) < first:
            return None
        if self.byte_at(begin + size - 1) >= first + len(piece):
            return None
        tiles: int = (begin + size - 1) // self.size - begin // self.size + 1
        return self._one if tiles == 1 else self.layout.elements().runs(tiles)

    @ccall
    def gather(self, piece: memoryview, first: int, begin: int, target: memoryview) -> None:
        """Copy what is seen of a piece of the file, from a position on.

        Args:
            piece: of the file.
            first: byte of the file that it begins with.
            begin: the position.
            target: gets as many bytes as it has room for; the piece has all of them.
        """
        runs: Runs | None = self._runs_of(piece, first, begin, len(target))
        if runs is not None:
            origin: int = self._tile(begin) - first
            gather_part(piece, origin, runs, begin % self.size, target, 0, len(target))
            return
        node, start, rest = self._tiles(begin, begin + len(target))
        StridedConvertor(piece, start - first, node).pack(rest, target)

    @ccall
    def scatter(self, piece: memoryview, first: int, begin: int, source: memoryview) -> None:
        """Copy bytes to where they are seen in a piece of the file. Arguments as above."""
        runs: Runs | None = self._runs_of(piece, first, begin, len(source))
        if runs is not None:
            origin: int = self._tile(begin) - first
            scatter_part(piece, origin, runs, begin % self.size, source, 0, len(source))
            return
        node, start, rest = self._tiles(begin, begin + len(source))
        StridedConvertor(piece, start - first, node).unpack(rest, source)

    def _tiles(self, begin: int, end: int) -> tuple[Node, int, int]:
        """The filetypes with positions `begin` to `end`, where they are, and what to skip."""
        tile, rest = divmod(begin, self.size)
        node = loop(-(-end // self.size) - tile, self._extent, self._node)
        return node, self._base + tile * self._extent, rest

    def runs(self, begin: int, end: int) -> Iterator[Place]:
        """The runs that positions `begin` to `end` are, adjacent ones as one.

        They come in the order of their positions, so that all before the first one which cannot be
        read has been, and what is written one after the other is.

        Yields:
            Where each is in the file, its position from `begin` on, and its length.
        """
        if begin >= end:
            return
        if self.contiguous:
            yield self._base + begin, 0, end - begin
            return
        node, start, rest = self._tiles(begin, end)
        at, position, length = 0, 0, 0
        for where, size in _blocks_in_order(node, start, rest, rest + end - begin):
            if length and where == at + length:
                length += size
                continue
            if length:
                yield at, position, length
            at, position, length = where, position + length, size
        yield at, position, length


def _blocks_in_order(node: Node, at: int, begin: int, end: int) -> Iterator[Block]:
    """The runs that a node's packed bytes `begin` to `end` are, in packed order.

    `Node.part` has no such order: a block of all tiles comes before the next block of the first.
    """
    if begin >= end:
        return
    if isinstance(node, Loop):
        body, size = node.body, node.body.size
        for number in range(begin // size, -(-end // size)):
            low, high = max(begin - number * size, 0), min(end - number * size, size)
            place = at + number * node.stride
            if isinstance(body, Run):
                yield place + low, high - low
            else:
                yield from _blocks_in_order(body, place, low, high)
        return
    if not isinstance(node, Scattered | Series):
        yield at + begin, end - begin
        return
    starts = node.starts
    for index in range(bisect_right(starts, begin) - 1, bisect_left(starts, end)):
        place, low = at + node.displacements[index], max(begin - starts[index], 0)
        if isinstance(node, Scattered):
            yield place + low, min(end - starts[index], node.lengths[index]) - low
        else:
            part = node.nodes[index]
            yield from _blocks_in_order(part, place, low, min(end - starts[index], part.size))


def _place_in(node: Node, position: int) -> int:
    """The displacement of a packed byte."""
    return next(_blocks_in_order(node, 0, position, position + 1))[0]


def _number_of_runs(node: Node) -> int:
    if isinstance(node, Loop):
        return node.count * _number_of_runs(node.body)
    if isinstance(node, Scattered):
        return len(node.lengths)
    if isinstance(node, Series):
        return sum(_number_of_runs(part) for part in node.nodes)
    return 1


def _is_ordered(node: Node) -> bool:
    """Whether a node's packed bytes are in the order of their displacements, each there once."""
    if isinstance(node, Loop):
        return node.stride >= node.body.high - node.body.low and _is_ordered(node.body)
    if isinstance(node, Scattered):
        ends = map(int.__add__, node.displacements, node.lengths)
        return all(end <= at for end, at in zip(ends, node.displacements[1:], strict=False))
    if isinstance(node, Series):
        bounds = [
            (at + part.low, at + part.high)
            for at, part in zip(node.displacements, node.nodes, strict=True)
        ]
        apart = all(before[1] <= after[0] for before, after in pairwise(bounds))
        return apart and all(map(_is_ordered, node.nodes))
    return True


def _seen_before(node: Node, byte: int) -> int:
    """How many bytes of an ordered node have a lower displacement."""
    if byte <= node.low:
        return 0
    if byte >= node.high:
        return node.size
    if isinstance(node, Loop):
        number = min((byte - node.body.low) // node.stride, node.count - 1)
        inside = byte - number * node.stride
        return number * node.body.size + _seen_before(node.body, inside)
    if isinstance(node, Scattered):
        index = bisect_right(node.displacements, byte - 1) - 1
        inside = min(byte - node.displacements[index], node.lengths[index])
        return node.starts[index] + inside
    if isinstance(node, Series):
        starts = [at + part.low for at, part in zip(node.displacements, node.nodes, strict=True)]
        index = bisect_right(starts, byte - 1) - 1
        inside = _seen_before(node.nodes[index], byte - node.displacements[index])
        return node.starts[index] + inside
    return byte


WHOLE_FILE: Final = FileView(0, BYTES)
