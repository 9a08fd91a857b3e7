"""Which bytes of a window are written, when several ranks' runs lie between each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from ompy.frameworks.io_base.view import FileView

Seen = tuple[FileView, int, int]  # a view, the first position, how many
Span = tuple[int, int]  # first byte, and after the last
PERIODS_MIN: Final = 4  # arbitrary: what repeats less often is looked through whole


def covered_runs(seen: Sequence[Seen], low: int, high: int) -> Iterator[Span]:
    """The runs that any of the positions are, of bytes `low` to `high`, without gaps inside.

    Where all members' views repeat together and a period has no gap, nothing has: columns of a
    matrix are so. Elsewhere bytes are looked through one by one.

    Args:
        seen: of each rank.
        low: first byte of the file.
        high: after the last.

    Yields:
        First byte, and after the last, of each run.
    """
    if not seen:
        return
    full = _without_gaps(seen)
    if full is None:
        yield from _marked_runs(seen, low, high)
        return
    begin = end = low
    before, after = _marked_runs(seen, low, full[0]), _marked_runs(seen, full[1], high)
    for first, last in chain(before, (full,), after):
        if first > end:
            if end > begin:
                yield begin, end
            begin = first
        end = last
    yield begin, end


def _without_gaps(seen: Sequence[Seen]) -> Span | None:
    """Where all members write and leave no gap, if their views repeat there; else None."""
    low = max(view.byte_at(begin) for view, begin, _ in seen)
    high = min(view.byte_at(begin + size - 1) + 1 for view, begin, size in seen)
    periods = [view.period(begin, begin + size) for view, begin, size in seen]
    period = max(periods)
    if high - low < PERIODS_MIN * period or any(period % each for each in periods):
        return None
    found = list(_marked_runs(seen, low, low + period))
    return (low, high) if found == [(low, low + period)] else None


def _marked_runs(seen: Sequence[Seen], low: int, high: int) -> Iterator[Span]:
    """The runs in a part of the window.

    A mark for each byte says whether somebody writes it. They are set as the data are, by the
    datatype engine, and looked through by `bytes.find`, so neither takes a step for each run.
    """
    marks = memoryview(bytearray(high - low))
    for view, begin, size in seen:
        first = max(begin, view.position_at(low))
        last = min(begin + size, view.position_at(high))
        if first < last:
            view.scatter(marks, low, first, memoryview(b"\1" * (last - first)))
    written = marks.obj
    assert isinstance(written, bytearray)
    begin = written.find(b"\1")
    while begin >= 0:
        end = written.find(b"\0", begin)
        if end < 0:
            end = high - low
        yield low + begin, low + end
        begin = written.find(b"\1", end)
