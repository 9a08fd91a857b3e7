"""Layouts as bytes: how a target learns of the datatype an origin describes its window by.

    bounds    lower, extent, displacement of the data: 8 bytes each
    format    2 bytes, filled with zeros
    node      a letter, then what that kind of node has (`data/typemap.py`)

Few datatypes of programs have more than some ten nodes, so nothing is kept for the next time.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from struct import error as _struct_error
from typing import Any, Final

from ompy.data.errors import ERR_TYPE, MPIError
from ompy.data.layout import Layout
from ompy.data.typemap import Loop, Node, Run, Scattered, Series

_BOUNDS: Final = Struct("<qqq2s")
_ONE: Final = Struct("<cq")
_TWO: Final = Struct("<cqq")
_NUMBER: Final = Struct("<q")
RUN: Final = b"R"
LOOP: Final = b"L"
SERIES: Final = b"S"
SCATTERED: Final = b"X"
DEPTH_MAX: Final = 200  # arbitrary: of nodes in nodes; Python's own limit is 1000 calls


def encode_layout(layout: Layout) -> bytes:
    """A layout as bytes."""
    head = _BOUNDS.pack(layout.lower, layout.extent, layout.displacement, layout.format.encode())
    return b"".join((head, *_of_node(layout.node)))


def _of_node(node: Node) -> Iterator[bytes]:
    if isinstance(node, Run):
        yield _ONE.pack(RUN, node.size)
    elif isinstance(node, Loop):
        yield _TWO.pack(LOOP, node.count, node.stride)
        yield from _of_node(node.body)
    elif isinstance(node, Series):
        yield _ONE.pack(SERIES, len(node.nodes))
        for displacement, part in zip(node.displacements, node.nodes, strict=True):
            yield _NUMBER.pack(displacement)
            yield from _of_node(part)
    else:
        assert isinstance(node, Scattered), "there are four kinds of nodes"
        count = len(node.lengths)
        numbers = Struct(f"<{2 * count}q")
        yield _ONE.pack(SCATTERED, count)
        yield numbers.pack(*node.displacements, *node.lengths)


def decode_layout(data: memoryview) -> Layout:
    """The layout that `encoded` has made bytes of.

    Raises:
        MPIError: ERR_TYPE, these are no such bytes.
    """
    try:
        lower, extent, displacement, kind = _BOUNDS.unpack_from(data)
        reader = _Reader(data, _BOUNDS.size)
        node = reader.node(0)
        text = kind.rstrip(b"\0").decode("ascii")
        if reader.at != len(data):
            raise ValueError(f"{len(data) - reader.at} bytes too many")
        return Layout.of((displacement, node), lower, extent, text)
    except (ValueError, IndexError, AssertionError, LookupError, ArithmeticError) as problem:
        raise MPIError(ERR_TYPE, f"no datatype can be read of {len(data)} bytes") from problem
    except _struct_error as problem:
        raise MPIError(ERR_TYPE, f"a datatype of {len(data)} bytes is cut") from problem


class _Reader:
    """Reads nodes, one after the other."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data = data
        self.at = at

    def node(self, depth: int) -> Node:
        """The node that begins here."""
        if depth > DEPTH_MAX:
            raise ValueError("too many nodes in nodes")
        kind, number = self._take(_ONE)
        if number < 0:
            raise ValueError("a negative number of bytes or nodes")
        if kind == RUN:
            return Run(number)
        if kind == LOOP:
            (stride,) = self._take(_NUMBER)
            return Loop(number, stride, self.node(depth + 1))
        if number * _NUMBER.size > len(self._data) - self.at:
            raise ValueError("more nodes than there are bytes")
        if kind == SERIES:
            parts = []
            for _ in range(number):
                (displacement,) = self._take(_NUMBER)
                parts.append((displacement, self.node(depth + 1)))
            return Series(parts)
        if kind != SCATTERED:
            raise ValueError("an unknown kind of node")
        numbers = list(self._take(Struct(f"<{2 * number}q")))
        if any(length <= 0 for length in numbers[number:]):
            raise ValueError("a run of no bytes")
        return Scattered(numbers[:number], numbers[number:])

    def _take(self, form: Struct) -> tuple[Any, ...]:
        found = form.unpack_from(self._data, self.at)
        self.at += form.size
        return found
