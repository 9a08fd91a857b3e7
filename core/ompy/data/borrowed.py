"""A user's buffer while a message is in it: its place and size, without an object of ours.

Interpreted, this module is used, and what is borrowed is a view of the buffer. Compiled,
`borrowed.pxd` takes its place: a view is two objects there, and asking for it costs as much as
all the rest of a small message's way into shared memory. Whoever borrows gives back.
"""

from __future__ import annotations

from typing import Any

from ompy import raw
from ompy.data.run_parts import parts_of_runs

Lent = Any  # what `borrow` made


def borrow(buffer: Any, writable: bool) -> Lent:
    """A contiguous buffer of numbers, locked; whatever else it may be, nothing is lent."""
    view = raw.numbers(buffer)
    return view if view is not None and not (writable and view.readonly) else None


def borrow_bytes(buffer: Any, writable: bool) -> Lent:
    """The same of a buffer whose datatype is given apart: what `raw.any_bytes` takes."""
    view = raw.any_bytes(buffer)
    return view if view is not None and not (writable and view.readonly) else None


def nothing() -> Lent:
    """Nothing that was lent."""
    return None


def is_lent(lent: Lent) -> bool:
    """Whether there is something."""
    return lent is not None


def size(lent: Lent) -> int:
    """Bytes of it."""
    return len(lent)


def view_of(lent: Lent, owner: Any) -> memoryview:  # noqa: ARG001 - compiled it is asked
    """A view of all its bytes (format B)."""
    view: memoryview = lent
    return view


def copy_out(lent: Lent, target: memoryview, at: int, count: int) -> None:
    """Copy its first `count` bytes to byte `at` of `target`."""
    target[at : at + count] = lent[:count]


def stream_out(lent: Lent, target: memoryview, at: int, count: int) -> None:
    """Copy as `copy_out` does, past this core's cache where this is compiled."""
    target[at : at + count] = lent[:count]


def copy_in(lent: Lent, source: memoryview, start: int, count: int) -> None:
    """Copy `count` bytes of `source` from byte `start` on to its beginning."""
    lent[:count] = source[start : start + count]


def give_back(lent: Lent) -> None:
    """Unlock the buffer. Interpreted, the view does that when it goes."""


def export_views(kind: type) -> bool:  # noqa: ARG001 - compiled it is changed
    """Have instances of a class export the view that is their `_view`, by a function in C.

    Returns:
        Whether they do; interpreted the class has to see to it itself.
    """
    return False


def gather_runs(
    lent: Lent,
    start: int,
    inner: int,
    stride: int,
    outer_stride: int,
    length: int,
    table: memoryview,
    each: int,
    extent: int,
    target: memoryview,
    at: int,
    offset: int,
    count: int,
) -> None:
    """Copy packed bytes `offset` to `offset + count` of runs in it to byte `at` of `target`.

    Run number k begins at byte `start + k // inner * outer_stride + k % inner * stride` and has
    `length` bytes. If `inner` is 0 a table has the runs of an element: of each three words of 64
    bits, its displacement, its length, and its place among the packed bytes of the element. The
    element has `each` of them; the next one is `extent` bytes further on.
    """
    loops = inner, stride, outer_stride, length
    for place, begin, part in parts_of_runs(loops, table, each, extent, offset, count):
        target[at + begin : at + begin + part] = lent[start + place : start + place + part]


def scatter_runs(
    lent: Lent,
    start: int,
    inner: int,
    stride: int,
    outer_stride: int,
    length: int,
    table: memoryview,
    each: int,
    extent: int,
    source: memoryview,
    at: int,
    offset: int,
    count: int,
) -> None:
    """The same the other way: `count` bytes of `source` from byte `at` on to their runs."""
    loops = inner, stride, outer_stride, length
    for place, begin, part in parts_of_runs(loops, table, each, extent, offset, count):
        lent[start + place : start + place + part] = source[at + begin : at + begin + part]


# the same of a byte view: compiled, what is lent is none
gather_viewed = gather_runs
scatter_viewed = scatter_runs


def exchange_runs(
    lent: Lent,
    start: int,
    inner: int,
    stride: int,
    outer_stride: int,
    length: int,
    table: memoryview,
    each: int,
    extent: int,
    packed: Lent,
    at: int,
    count: int,
    unpacks: bool,
    pattern: bytes,
) -> None:
    """The first `count` bytes, one way or the other, with packed bytes that are lent, too.

    Numbers among the packed bytes are turned round as `pattern` says: of each two words of 64 bits,
    the bytes of a number, and how many of them follow each other; again and again to the end.
    """
    runs = inner, stride, outer_stride, length, table, each, extent
    if not unpacks:
        gather_runs(lent, start, *runs, packed, at, 0, count)
        if pattern:
            packed[at : at + count] = _turned(packed[at : at + count], pattern)
        return
    came = packed[at : at + count]
    scatter_runs(lent, start, *runs, _turned(came, pattern) if pattern else came, 0, 0, count)


def _turned(numbers: memoryview, pattern: bytes) -> memoryview:
    """A copy in which the bytes of each number are the other way round."""
    made = bytearray(numbers)
    words = memoryview(pattern).cast("q")
    at = 0
    while at < len(made):
        for word in range(0, len(words), 2):
            for _ in range(words[word + 1]):
                made[at : at + words[word]] = made[at : at + words[word]][::-1]
                at += words[word]
    return memoryview(made)
