"""The traffic as text for people: matrices that line up, folded where they are too wide."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from math import ceil
from typing import Final

from ompy_pml_monitoring.counts import KINDS
from ompy_pml_monitoring.traffic import Matrix, Side, Traffic

NOTHING: Final = "."
SUM: Final = "sum"
TITLES: Final = ("messages", "bytes")
EXACT_BELOW: Final = 10_000  # arbitrary: four digits are as short as a number with a unit
ONE_DIGIT_BELOW: Final = 9.95  # arbitrary: what prints as 9.9; from there on no decimals
COUNT_UNITS: Final = (1000, "kMGTPE")  # SI prefixes
BYTE_UNITS: Final = (1024, "KMGTPE")
LOST_MAX: Final = 10  # arbitrary: pairs listed before the rest is only counted
WHAT: Final = {"user": "by the program", "internal": "inside collectives and the like"}


def scaled(value: int, units: tuple[int, str]) -> str:
    """A number in at most five characters: exact up to 9999, then 9.8K, 12K, 1.2M, ..."""
    if value < EXACT_BELOW:
        return str(value)
    base, names = units
    amount, step = float(value), 0
    while amount >= base - 0.5 and step < len(names):
        amount, step = amount / base, step + 1
    digits = 1 if amount < ONE_DIGIT_BELOW else 0
    return f"{amount:.{digits}f}{names[step - 1]}"


def matrix_lines(title: str, cells: list[list[str]], width: int) -> Iterator[str]:
    """A square matrix whose last row and column are sums, in blocks of columns.

    Args:
        title: stands in the corner of each block.
        cells: one row and one column more than there are ranks.
        width: columns of text a block may take; 0 for any number.
    """
    heads = [*map(str, range(len(cells) - 1)), SUM]
    label = max(map(len, (*TITLES, SUM)))  # the same for all matrices, so that they line up
    column = max(len(text) for row in (heads, *cells) for text in row)
    gap = 2 if label + len(heads) * (column + 2) <= (width or sys.maxsize) else 1
    fitting = max(1, (width - label) // (column + gap)) if width else len(heads)
    blocks = ceil(len(heads) / fitting)
    fitting = ceil(len(heads) / blocks)  # all blocks about as wide
    for first in range(0, len(heads), fitting):
        part = slice(first, first + fitting)
        if first:
            yield ""
        for name, row in zip([title, *heads], [heads, *cells], strict=True):
            yield name.rjust(label) + "".join(" " * gap + text.rjust(column) for text in row[part])


def _with_totals(matrix: Matrix) -> Matrix:
    """The matrix with a column and a row of sums."""
    wide = [[*row, sum(row)] for row in matrix]
    return [*wide, [sum(column) for column in zip(*wide, strict=True)]]


def _kind_lines(kind: str, side: Side, width: int) -> Iterator[str]:
    """Both matrices of one kind of messages."""
    messages, sizes = _with_totals(side.messages), _with_totals(side.bytes)
    count, size = messages[-1][-1], sizes[-1][-1]
    told = f"{count} with {size} bytes" if count else "none"
    yield f"{kind} messages ({WHAT[kind]}): {told}"
    if not count:
        return
    yield ""
    counts = [[scaled(n, COUNT_UNITS) if n else NOTHING for n in row] for row in messages]
    yield from matrix_lines(TITLES[0], counts, width)
    if not size:
        return
    yield ""
    volumes = [
        [scaled(size, BYTE_UNITS) if count else NOTHING for count, size in zip(*rows, strict=True)]
        for rows in zip(messages, sizes, strict=True)
    ]
    yield from matrix_lines(TITLES[1], volumes, width)


def bucket_name(bits: int) -> str:
    """The sizes that take so many bits, as 0, 1, 2-3, 4-7, ..., 512-1023, 1K-2K, ..."""
    least = 1 << bits >> 1
    if bits < 2:
        return str(least)
    if least < 1024:
        return f"{least}-{2 * least - 1}"
    return f"{_power(least)}-{_power(2 * least)}"


def _power(value: int) -> str:
    """A power of two from 1024 on, exactly."""
    base, names = BYTE_UNITS
    step = 0
    while value >= base and step < len(names):
        value //= base
        step += 1
    return f"{value}{names[step - 1]}"


def _size_lines(sizes: dict[str, list[int]]) -> Iterator[str]:
    """How many messages were of which size."""
    rows = [["message size", *KINDS]]
    for bits, counts in enumerate(zip(*(sizes[kind] for kind in KINDS), strict=True)):
        if any(counts):
            texts = [scaled(count, COUNT_UNITS) if count else NOTHING for count in counts]
            rows.append([bucket_name(bits), *texts])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if len(rows) > 1:
        yield ""
        for row in rows:
            yield "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))


def _remark_lines(traffic: Traffic) -> Iterator[str]:
    """What the reader has to know to trust the matrices."""
    for rank, reason in sorted(traffic.missing.items()):
        yield f"no counts of rank {rank}: {reason}"
    if traffic.missing:
        yield "the rows of these ranks show what the others received from them"
    lost = traffic.lost()
    for each in lost[:LOST_MAX]:
        yield (
            f"sent and not received: {each.messages} {each.kind} message(s) of {each.bytes} bytes "
            f"from rank {each.source} to rank {each.target}"
        )
    if len(lost) > LOST_MAX:
        yield f"sent and not received: more between {len(lost) - LOST_MAX} other pairs of ranks"


def text(traffic: Traffic, width: int) -> str:
    """The whole report, ending with a newline."""
    lines = [
        f"monitoring: what {traffic.ranks} rank(s) sent each other; rows send, columns receive",
        f"({NOTHING} no message; k, M, G: powers of 1000 for messages, of 1024 for bytes)",
        "",
    ]
    for kind in KINDS:
        lines += _kind_lines(kind, traffic.known(kind), width)
        lines.append("")
    lines.pop()
    lines += _size_lines(traffic.sizes)
    remarks = list(_remark_lines(traffic))
    if remarks:
        lines += ["", *remarks]
    return "\n".join(lines) + "\n"
