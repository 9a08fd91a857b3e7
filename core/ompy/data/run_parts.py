"""Where the bytes of elements with gaps lie, run by run: for code that is not compiled."""

from __future__ import annotations

from collections.abc import Iterator


def parts_of_runs(
    loops: tuple[int, int, int, int],
    table: memoryview,
    each: int,
    extent: int,
    offset: int,
    count: int,
) -> Iterator[tuple[int, int, int]]:
    """Where in memory, where in the packed bytes, and how long; the first and last may be cut."""
    inner, stride, outer_stride, length = loops
    if not inner:
        yield from _parts_of_table(table.cast("q"), each, extent, offset, count)
        return
    done = 0
    while done < count:
        run, skip = divmod(offset + done, length)
        row, column = divmod(run, inner)
        part = min(length - skip, count - done)
        yield row * outer_stride + column * stride + skip, done, part
        done += part


def _parts_of_table(
    table: memoryview, each: int, extent: int, offset: int, count: int
) -> Iterator[tuple[int, int, int]]:
    done = 0
    while done < count:
        element, rest = divmod(offset + done, each)
        for word in range(0, len(table), 3):
            place, length, begin = table[word : word + 3]
            skip = rest - begin
            if 0 <= skip < length and done < count:
                part = min(length - skip, count - done)
                yield element * extent + place + skip, done, part
                done += part
                rest += part
