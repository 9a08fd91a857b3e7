"""Type maps: where the bytes of an element lie, as a tree of loops.

Four kinds of nodes describe every datatype of MPI in little memory: a vector of a million blocks
is one `Loop` around one `Run`. A node's bytes lie at displacements from wherever the node is put;
the packed order is the order of the tree.

What is to be copied for a range of packed bytes comes out as `Slab`s (equal runs at regular
strides) and `Scatter`s (runs anywhere), few and large, so that the copying is done by library
code. A range may begin and end at any byte.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise, product
from math import prod
from typing import NamedTuple

Block = tuple[int, int]  # displacement and length, in bytes
Dimension = tuple[int, int, int]  # how many, stride in memory, stride in the packed bytes


class Slab(NamedTuple):
    """Runs of `length` bytes at regular strides.

    Attributes:
        memory: displacement of the first run.
        packed: where the first run is in the packed bytes of the range.
        length: of each run.
        dimensions: of the array of runs, outermost first; none for a single run.
    """

    memory: int
    packed: int
    length: int
    dimensions: tuple[Dimension, ...]


class Scatter(NamedTuple):
    """Runs number `first` to `last` of a node, one after the other in the packed bytes."""

    memory: int
    packed: int
    node: Scattered
    first: int
    last: int


Piece = Slab | Scatter


class Node:
    """Some bytes in a packed order.

    Attributes:
        size: of them.
        low, high: displacement of the first byte in memory, and after the last one.
    """

    __slots__ = ("high", "low", "size")

    size: int
    low: int
    high: int

    def whole(self, memory: int, packed: int, dimensions: tuple[Dimension, ...]) -> Iterator[Piece]:
        """All of it, once for each place of an array of nodes."""
        raise NotImplementedError

    def part(self, memory: int, packed: int, begin: int, end: int) -> Iterator[Piece]:
        """Its packed bytes from `begin` to `end`, which go to byte `packed` of the range."""
        raise NotImplementedError

    def blocks(self, memory: int) -> Iterator[Block]:
        """Its runs one by one. As many as there are: for small types and tests."""
        raise NotImplementedError


class Run(Node):
    """Bytes side by side."""

    __slots__ = ()

    def __init__(self, size: int) -> None:
        self.size = size
        self.low = 0
        self.high = size

    def whole(self, memory: int, packed: int, dimensions: tuple[Dimension, ...]) -> Iterator[Piece]:
        """One slab."""
        if self.size:
            yield Slab(memory, packed, self.size, dimensions)

    def part(self, memory: int, packed: int, begin: int, end: int) -> Iterator[Piece]:
        """One slab of one run."""
        if end > begin:
            yield Slab(memory + begin, packed, end - begin, ())

    def blocks(self, memory: int) -> Iterator[Block]:
        """One."""
        if self.size:
            yield memory, self.size


class Loop(Node):
    """`count` equal nodes, `stride` bytes apart. Neither is the node empty nor the count 0."""

    __slots__ = ("body", "count", "stride")

    def __init__(self, count: int, stride: int, body: Node) -> None:
        assert count > 0, "loop() makes nothing of no nodes"
        assert body.size > 0, "loop() makes nothing of empty nodes"
        self.count = count
        self.stride = stride
        self.body = body
        self.size = count * body.size
        reach = (count - 1) * stride
        self.low = body.low + min(0, reach)
        self.high = body.high + max(0, reach)

    def whole(self, memory: int, packed: int, dimensions: tuple[Dimension, ...]) -> Iterator[Piece]:
        """The body's, in an array of one more dimension."""
        body = self.body
        return body.whole(memory, packed, (*dimensions, (self.count, self.stride, body.size)))

    def part(self, memory: int, packed: int, begin: int, end: int) -> Iterator[Piece]:
        """The end of one body, some whole ones, the beginning of another."""
        body = self.body
        first, skip = divmod(begin, body.size)
        last, rest = divmod(end, body.size)
        if first == last:
            yield from body.part(memory + first * self.stride, packed, skip, rest)
            return
        if skip:
            yield from body.part(memory + first * self.stride, packed, skip, body.size)
            first += 1
            packed += body.size - skip
        if last > first:
            dimension = (last - first, self.stride, body.size)
            yield from body.whole(memory + first * self.stride, packed, (dimension,))
            packed += (last - first) * body.size
        if rest:
            yield from body.part(memory + last * self.stride, packed, 0, rest)

    def blocks(self, memory: int) -> Iterator[Block]:
        """Those of every body."""
        for number in range(self.count):
            yield from self.body.blocks(memory + number * self.stride)


class Series(Node):
    """Different nodes, each at a displacement of its own. None of them is empty."""

    __slots__ = ("displacements", "nodes", "starts")

    def __init__(self, parts: Sequence[tuple[int, Node]]) -> None:
        self.displacements = [at for at, _ in parts]
        self.nodes = [node for _, node in parts]
        *self.starts, self.size = accumulate((node.size for node in self.nodes), initial=0)
        self.low = min(at + node.low for at, node in parts)
        self.high = max(at + node.high for at, node in parts)

    def whole(self, memory: int, packed: int, dimensions: tuple[Dimension, ...]) -> Iterator[Piece]:
        """Each node in the whole array; or each place of a small array by itself."""
        places = [(memory, packed)]
        if prod(count for count, _, _ in dimensions) < len(self.nodes):
            places = list(_places(memory, packed, dimensions))
            dimensions = ()
        for at, to in places:
            for displacement, start, node in zip(
                self.displacements, self.starts, self.nodes, strict=True
            ):
                yield from node.whole(at + displacement, to + start, dimensions)

    def part(self, memory: int, packed: int, begin: int, end: int) -> Iterator[Piece]:
        """The nodes in the range; the first and the last may be cut."""
        if begin >= end:
            return
        shift = packed - begin
        for index in range(bisect_right(self.starts, begin) - 1, bisect_left(self.starts, end)):
            node, start = self.nodes[index], self.starts[index]
            low, high = max(begin - start, 0), min(end - start, node.size)
            at = memory + self.displacements[index]
            if high - low == node.size:
                yield from node.whole(at, shift + start, ())
            else:
                yield from node.part(at, shift + start + low, low, high)

    def blocks(self, memory: int) -> Iterator[Block]:
        """Those of every node."""
        for displacement, node in zip(self.displacements, self.nodes, strict=True):
            yield from node.blocks(memory + displacement)


class Scattered(Node):
    """Runs at any displacements, of any lengths but 0.

    Attributes:
        displacements, lengths: of the runs.
        starts: of the runs in the packed bytes.
        arrays: what library code made of them, kept for the next time.
    """

    __slots__ = ("arrays", "displacements", "lengths", "starts")

    def __init__(self, displacements: list[int], lengths: list[int]) -> None:
        self.displacements = displacements
        self.lengths = lengths
        *self.starts, self.size = accumulate(lengths, initial=0)
        self.low = min(displacements)
        self.high = max(map(int.__add__, displacements, lengths))
        self.arrays: object = None

    def whole(self, memory: int, packed: int, dimensions: tuple[Dimension, ...]) -> Iterator[Piece]:
        """A slab for each run of a large array; else a scatter for each place."""
        if prod(count for count, _, _ in dimensions) < len(self.lengths):
            for at, to in _places(memory, packed, dimensions):
                yield Scatter(at, to, self, 0, len(self.lengths))
            return
        for displacement, length, start in zip(
            self.displacements, self.lengths, self.starts, strict=True
        ):
            yield Slab(memory + displacement, packed + start, length, dimensions)

    def part(self, memory: int, packed: int, begin: int, end: int) -> Iterator[Piece]:
        """The end of one run, some whole ones, the beginning of another."""
        if begin >= end:
            return
        shift = packed - begin
        first = bisect_right(self.starts, begin) - 1
        last = bisect_left(self.starts, end)  # the run after the last one
        if begin > self.starts[first]:
            yield self._cut(first, memory, shift, begin, end)
            first += 1
        whole = last if end >= self._end(last - 1) else last - 1
        if whole > first:
            yield Scatter(memory, shift + self.starts[first], self, first, whole)
        if whole < last and last > first:
            yield self._cut(last - 1, memory, shift, begin, end)

    def _end(self, index: int) -> int:
        return self.starts[index] + self.lengths[index]

    def _cut(self, index: int, memory: int, shift: int, begin: int, end: int) -> Slab:
        """What is in the range of one run."""
        low, high = max(begin, self.starts[index]), min(end, self._end(index))
        at = memory + self.displacements[index] + low - self.starts[index]
        return Slab(at, shift + low, high - low, ())

    def blocks(self, memory: int) -> Iterator[Block]:
        """Its runs."""
        for displacement, length in zip(self.displacements, self.lengths, strict=True):
            yield memory + displacement, length


EMPTY = Run(0)


def _places(
    memory: int, packed: int, dimensions: tuple[Dimension, ...]
) -> Iterator[tuple[int, int]]:
    """The places of an array, in packed order."""
    for indices in product(*(range(count) for count, _, _ in dimensions)):
        at, to = memory, packed
        for number, (_, stride, step) in zip(indices, dimensions, strict=True):
            at += number * stride
            to += number * step
        yield at, to


def loop(count: int, stride: int, body: Node) -> Node:
    """`count` equal nodes, `stride` bytes apart, in the plainest form there is for them."""
    if not count or not body.size:
        return EMPTY
    if count == 1:
        return body
    if isinstance(body, Run) and stride == body.size:
        return Run(count * body.size)
    if isinstance(body, Loop) and stride == body.count * body.stride:
        return Loop(count * body.count, body.stride, body.body)
    return Loop(count, stride, body)


def sequence(parts: Iterable[tuple[int, Node]]) -> tuple[int, Node]:
    """Nodes at displacements, in the plainest form: its displacement, and the node."""
    there = [(at, node) for at, node in parts if node.size]
    if not there:
        return 0, EMPTY
    if all(isinstance(node, Run) for _, node in there):
        return runs((at, node.size) for at, node in there)
    first, body = there[0]
    if all(node is body for _, node in there):
        stride = _spacing([at for at, _ in there])
        if stride is not None:
            return first, loop(len(there), stride, body)
    return (first, body) if len(there) == 1 else (0, Series(there))


def runs(blocks: Iterable[Block]) -> tuple[int, Node]:
    """Runs at displacements, adjacent ones merged: their displacement, and the node."""
    displacements: list[int] = []
    lengths: list[int] = []
    end: int | None = None
    for at, length in blocks:
        if at == end and length:
            lengths[-1] += length
            end += length
        elif length:
            displacements.append(at)
            lengths.append(length)
            end = at + length
    if not lengths:
        return 0, EMPTY
    if len(set(lengths)) == 1:
        stride = _spacing(displacements)
        if stride is not None:
            return displacements[0], loop(len(lengths), stride, Run(lengths[0]))
    return 0, Scattered(displacements, lengths)


def _spacing(displacements: Sequence[int]) -> int | None:
    """The distance between neighbours when it is the same everywhere; 0 for a single one."""
    if len(displacements) == 1:
        return 0
    stride = displacements[1] - displacements[0]
    for before, after in pairwise(displacements):
        if after - before != stride:
            return None
    return stride
