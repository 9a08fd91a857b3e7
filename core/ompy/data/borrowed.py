"""A user's buffer while a message is in it: its place and size, without an object of ours.

Interpreted, this module is used, and what is borrowed is a view of the buffer. Compiled,
`borrowed.pxd` takes its place: a view is two objects there, and asking for it costs as much as
all the rest of a small message's way into shared memory. Whoever borrows gives back.
"""

from __future__ import annotations

from typing import Any

from ompy import raw

Lent = Any  # what `borrow` made


def borrow(buffer: Any, writable: bool) -> Lent:
    """A contiguous buffer of numbers, locked; whatever else it may be, nothing is lent."""
    view = raw.numbers(buffer)
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


def copy_in(lent: Lent, source: memoryview, start: int, count: int) -> None:
    """Copy `count` bytes of `source` from byte `start` on to its beginning."""
    lent[:count] = source[start : start + count]


def give_back(lent: Lent) -> None:
    """Unlock the buffer. Interpreted, the view does that when it goes."""
