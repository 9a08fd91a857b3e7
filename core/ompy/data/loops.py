"""Elements with gaps, copied by a loop in C: of sends and receives, and of Pack and Unpack.

Either their runs are equal and lie at regular strides, one loop in another: a vector, a subarray of
two dimensions, several elements of either, a block of each record. Or a table says where each run
of one element is: all else. What has more runs than a table should have is `strided.py`'s.

Interpreted, a loop in Python copies run by run: few of them, and NumPy has the others.
"""

# ruff: noqa: SLF001 - what is made without `__init__` is set up by functions of this module

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from ompy import raw
from ompy.compiled import ccall, cclass, cfunc, recycled
from ompy.compiled_loader import is_compiled
from ompy.data import borrowed
from ompy.data.convertor import Convertor
from ompy.data.run_parts import parts_of_runs
from ompy.data.typemap import Block, Loop, Node, Run, loop

COMPILED: Final = is_compiled(__name__)
# Arbitrary: 24 bytes each; who has more of them in one element will not feel an array of NumPy's.
# Interpreted, measured: a run takes 0.4 us, the calls of NumPy for all of them 4 us.
TABLE_MOST: Final = 1 << 16 if COMPILED else 8
WORDS: Final = 3  # of a run in a table: displacement, bytes, place in the packed bytes
_ENTRY: Final = 24  # bytes of these
_PACKED: Final = 16  # byte of the last one
# runs in the inner loop, bytes from one to the next, from one inner loop to the next, of a run
Shape = tuple[int, int, int, int]


def shape_of(node: Node) -> Shape | None:
    """The loops of a node that is a run, a loop, or a loop in another; None of any other."""
    if isinstance(node, Run):
        return 1, 0, 0, node.size
    if isinstance(node, Loop) and isinstance(node.body, Run):
        return node.count, node.stride, 0, node.body.size
    if isinstance(node, Loop) and isinstance(node.body, Loop) and isinstance(node.body.body, Run):
        return node.body.count, node.body.stride, node.stride, node.body.body.size
    return None


def table_of(node: Node) -> array[int] | None:
    """Where the runs of a node are, adjacent ones merged; None if there are too many."""
    found = array("q")
    packed = 0
    for at, length in islice(node.blocks(0), TABLE_MOST + 1):
        if found and found[-WORDS] + found[1 - WORDS] == at:
            found[1 - WORDS] += length
        else:
            found.extend((at, length, packed))
        packed += length
    return found if packed == node.size else None


@cclass
class Runs:
    """Where the bytes of so many elements lie, from the origin of the first one.

    Attributes:
        count: elements.
        size: packed bytes of all.
        first, last: the bytes that they touch; the last one is not among them.
        start: byte where the first run begins that the loops or the table speak of.
        inner, stride, outer_stride, length: the loops, as `Shape` has them.
        each, extent: packed bytes of an element, and bytes to the next one.
        table: of the runs of an element; none where there are loops.
    """

    count: int
    each: int
    extent: int
    first: int
    inner: int
    last: int
    length: int
    outer_stride: int
    size: int
    start: int
    stride: int
    table: memoryview[int]
    __slots__ = tuple(__annotations__)

    @ccall
    def fits(self, origin: int, size: int) -> bool:
        """Whether a buffer of so many bytes has all of it, the first element at byte `origin`."""
        return origin + self.first >= 0 and origin + self.last <= size

    @ccall
    def byte_at(self, offset: int) -> int:
        """Where a packed byte is, from the first element's origin."""
        if self.inner:
            run: int = offset // self.length
            row: int = run // self.inner
            place: int = row * self.outer_stride + (run - row * self.inner) * self.stride
            return self.start + place + offset - run * self.length
        element: int = offset // self.each
        rest: int = offset - element * self.each
        low: int = 0
        high: int = raw.size(self.table) // _ENTRY
        while high - low > 1:
            middle: int = (low + high) // 2
            if raw.signed_word(self.table, middle * _ENTRY + _PACKED) <= rest:
                low = middle
            else:
                high = middle
        entry: int = low * _ENTRY
        within: int = rest - raw.signed_word(self.table, entry + _PACKED)
        first: int = raw.signed_word(self.table, entry)
        return self.start + element * self.extent + first + within


def pieces_of(runs: Runs) -> Iterator[Block]:
    """Byte, from the first element's origin, and length of each run, in the order of packed bytes.

    Where calls of a runtime in C take them as they are, nobody asks for them one by one.
    """
    loops = runs.inner, runs.stride, runs.outer_stride, runs.length
    for at, _, length in parts_of_runs(loops, runs.table, runs.each, runs.extent, 0, runs.size):
        yield runs.start + at, length


@cclass
class Elements:
    """Any number of elements of a layout; what was asked for last is kept."""

    _displacement: int
    _known: Runs | None
    _node: Node
    _table: memoryview[int] | None
    each: int
    extent: int
    __slots__ = tuple(__annotations__)

    def __init__(self, displacement: int, node: Node, extent: int) -> None:
        """Take an element's data, a node at a displacement, and the bytes to the next element."""
        self._displacement = displacement
        self._known = None
        self._node = node
        self._table = None
        self.each = node.size
        self.extent = extent

    @ccall
    def runs(self, count: int) -> Runs | None:
        """Where `count` elements lie; None of nothing, and of what the loops are not for."""
        known: Runs | None = self._known
        if known is not None and known.count == count:
            return known
        return self._found(count)

    @cfunc
    def _found(self, count: int) -> Runs | None:
        one = self._node
        node = loop(count, self.extent, one)
        shape = shape_of(node)
        table = _NO_TABLE
        if shape is None:
            if self._table is None:
                made = table_of(one)
                self._table = _NO_TABLE if made is None else memoryview(made).cast("B")
            table = self._table
            shape = 0, 0, 0, 0
        if count <= 0 or not self.each or (not shape[0] and not raw.size(table)):
            return None
        if not COMPILED and shape[0] and node.size // shape[3] > TABLE_MOST:
            return None
        reach: int = (count - 1) * self.extent
        found: Runs = Runs.__new__(Runs)
        found.count = count
        found.each = self.each
        found.extent = self.extent
        found.first = self._displacement + one.low + min(0, reach)
        found.last = self._displacement + one.high + max(0, reach)
        found.inner, found.stride, found.outer_stride, found.length = shape
        found.size = node.size
        found.start = self._displacement
        found.table = table
        self._known = found
        return found


_NO_TABLE: Final = memoryview(b"")


@recycled
@cclass
class RunsConvertor(Convertor):
    """The bytes of elements with gaps, in a user's buffer."""

    _lent: borrowed.Lent
    _origin: int
    _owner: Any
    _runs: Runs
    __slots__ = tuple(__annotations__)

    @ccall
    def pack(self, offset: int, target: memoryview) -> int:
        """Gather bytes from `offset` on into `target`."""
        count: int = min(self.size - offset, raw.size(target))
        if count > 0:
            self._gather(target, 0, offset, count)
        return max(count, 0)

    @ccall
    def unpack(self, offset: int, source: memoryview) -> int:
        """Scatter `source` to the bytes from `offset` on."""
        count: int = min(self.size - offset, raw.size(source))
        if count > 0:
            self._scatter(source, 0, offset, count)
        return max(count, 0)

    @ccall
    def pack_at(self, target: memoryview, at: int, count: int) -> None:
        """Gather the first `count` bytes to byte `at` of `target`."""
        self._gather(target, at, 0, count)

    @ccall
    def unpack_from(self, source: memoryview, start: int, count: int) -> int:
        """Scatter `count` bytes of `source` from byte `start` on."""
        kept: int = min(self.size, count)
        if kept > 0:
            self._scatter(source, start, 0, kept)
        return kept

    @cfunc
    def _gather(self, target: memoryview, at: int, offset: int, count: int) -> None:
        runs: Runs = self._runs
        borrowed.gather_runs(
            self._lent,
            self._origin + runs.start,
            runs.inner,
            runs.stride,
            runs.outer_stride,
            runs.length,
            runs.table,
            runs.each,
            runs.extent,
            target,
            at,
            offset,
            count,
        )

    @cfunc
    def _scatter(self, source: memoryview, at: int, offset: int, count: int) -> None:
        runs: Runs = self._runs
        borrowed.scatter_runs(
            self._lent,
            self._origin + runs.start,
            runs.inner,
            runs.stride,
            runs.outer_stride,
            runs.length,
            runs.table,
            runs.each,
            runs.extent,
            source,
            at,
            offset,
            count,
        )

    def __dealloc__(self) -> None:
        # compiled; why: `LentConvertor.__dealloc__`
        borrowed.give_back(self._lent)
        self._owner = None
        self._view = None


@ccall
def convertor_of_runs(buffer: Any, origin: int, runs: Runs, writable: bool) -> RunsConvertor | None:
    """A convertor of elements in a user's contiguous buffer of numbers.

    Args:
        buffer: of the user; it stays locked against resizing while the convertor lives.
        origin: byte of the first element's origin.
        runs: where the elements lie.
        writable: it is to be written to.

    Returns:
        None for any other buffer, and where the elements reach beyond it.
    """
    made: RunsConvertor = RunsConvertor.__new__(RunsConvertor)
    made._lent = borrowed.borrow_bytes(buffer, writable)
    if not borrowed.is_lent(made._lent):
        return None
    made._owner = buffer
    made._view = None
    made._origin = origin
    made._runs = runs
    made.size = runs.size
    return made if runs.fits(origin, borrowed.size(made._lent)) else None


@ccall
def pack_runs(memory: memoryview, origin: int, runs: Runs, packed: memoryview, at: int) -> bool:
    """Gather elements of a byte view, without a convertor.

    Args:
        memory: format B, contiguous.
        origin: byte of the first element's origin.
        runs: where the elements lie.
        packed: room for all their bytes, in format B.
        at: byte where it begins.

    Returns:
        Whether it is done: not where they reach beyond the memory, or there is too little room.
    """
    if not runs.fits(origin, raw.size(memory)) or raw.size(packed) - at < runs.size:
        return False
    gather_part(memory, origin, runs, 0, packed, at, runs.size)
    return True


@ccall
def unpack_runs(
    memory: memoryview, origin: int, runs: Runs, packed: memoryview, at: int, size: int
) -> bool:
    """Scatter so many packed bytes, or as there is room for. Arguments are as for `pack_runs`."""
    if not runs.fits(origin, raw.size(memory)):
        return False
    scatter_part(memory, origin, runs, 0, packed, at, min(runs.size, size))
    return True


@ccall
def gather_part(
    memory: memoryview,
    origin: int,
    runs: Runs,
    offset: int,
    packed: memoryview,
    at: int,
    count: int,
) -> None:
    """Gather packed bytes from one on.

    Args:
        memory: format B; the caller knows that it has all of these bytes, perhaps not all elements.
        origin: byte of the first element's origin; may be before the memory.
        runs: where the elements lie.
        offset: of the first byte.
        packed: room for them, in format B.
        at: byte where it begins.
        count: how many.
    """
    borrowed.gather_viewed(
        memory,
        origin + runs.start,
        runs.inner,
        runs.stride,
        runs.outer_stride,
        runs.length,
        runs.table,
        runs.each,
        runs.extent,
        packed,
        at,
        offset,
        count,
    )


@ccall
def scatter_part(
    memory: memoryview,
    origin: int,
    runs: Runs,
    offset: int,
    packed: memoryview,
    at: int,
    count: int,
) -> None:
    """Scatter packed bytes to where those from an offset on belong. As `gather_part`."""
    borrowed.scatter_viewed(
        memory,
        origin + runs.start,
        runs.inner,
        runs.stride,
        runs.outer_stride,
        runs.length,
        runs.table,
        runs.each,
        runs.extent,
        packed,
        at,
        offset,
        count,
    )


# --- Pack and Unpack

NOT_COMMON: Final = -1  # nothing was done: the longer way knows what is wrong, if anything is


@ccall
def pack_elements(
    elements: Elements, buffer: Any, packed: Any, position: int, pattern: bytes
) -> int:
    """Pack as many elements as a user's buffer holds to byte `position` of another.

    Args:
        elements: of the buffer.
        buffer: what is left over at its end is left alone.
        packed: the other.
        position: in the other.
        pattern: numbers of which the bytes are turned round, as `borrowed.turn_numbers` takes them.

    Returns:
        The next position; NOT_COMMON for whatever is not two contiguous buffers of numbers, the
        second with room.
    """
    return _moved(elements, buffer, packed, position, pattern, False)


@ccall
def unpack_elements(
    elements: Elements, packed: Any, position: int, buffer: Any, pattern: bytes
) -> int:
    """Unpack as many elements as a user's buffer has room for from byte `position` of another.

    Arguments and what is returned are as for `pack_elements`.
    """
    return _moved(elements, buffer, packed, position, pattern, True)


@cfunc
def _moved(
    elements: Elements, buffer: Any, packed: Any, position: int, pattern: bytes, unpacks: bool
) -> int:
    here = borrowed.borrow_bytes(buffer, unpacks)
    if not borrowed.is_lent(here):
        return NOT_COMMON
    there = borrowed.nothing()
    end: int = NOT_COMMON
    try:
        there = borrowed.borrow_bytes(packed, not unpacks)
        if borrowed.is_lent(there) and elements.extent > 0:
            runs: Runs | None = elements.runs(borrowed.size(here) // elements.extent)
            if runs is not None and runs.fits(0, borrowed.size(here)):
                end = _copied(runs, here, there, position, pattern, unpacks)
    finally:
        borrowed.give_back(here)
        borrowed.give_back(there)
    return end


@cfunc
def _copied(
    runs: Runs,
    here: borrowed.Lent,
    there: borrowed.Lent,
    position: int,
    pattern: bytes,
    unpacks: bool,
) -> int:
    end: int = position + runs.size
    if position < 0 or end > borrowed.size(there):
        return NOT_COMMON
    borrowed.exchange_runs(
        here,
        runs.start,
        runs.inner,
        runs.stride,
        runs.outer_stride,
        runs.length,
        runs.table,
        runs.each,
        runs.extent,
        there,
        position,
        runs.size,
        unpacks,
        pattern,
    )
    return end
