"""Which bytes of a window are written, when several ranks' runs lie between each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ompy.frameworks.io_base.view import FileView

Seen = tuple[FileView, int, int]  # a view, the first position, how many


def covered_runs(seen: Sequence[Seen], low: int, high: int) -> Iterator[tuple[int, int]]:
    """The runs that any of the positions are, of bytes `low` to `high`, without gaps inside.

    A mark for each byte says whether somebody writes it. They are set as the data are, by the
    datatype engine, and looked through by `bytes.find`, so neither takes a step for each run.

    Args:
        seen: of each rank.
        low: first byte of the file.
        high: after the last.

    Yields:
        First byte, and after the last, of each run.
    """
    if not seen:
        return
    marks = memoryview(bytearray(high - low))
    ones = b"\1" * max(size for _, _, size in seen)
    for view, begin, size in seen:
        view.scatter(marks, low, begin, memoryview(ones)[:size])
    written = marks.obj
    assert isinstance(written, bytearray)
    begin = written.find(b"\1")
    while begin >= 0:
        end = written.find(b"\0", begin)
        if end < 0:
            end = high - low
        yield low + begin, low + end
        begin = written.find(b"\1", end)
