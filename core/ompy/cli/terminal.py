"""How text is laid out: labels in a column, wrapping on a terminal, tables, colour.

Reference: openmpi.md 2.2 (the pretty format of `ompi_info`).
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

LABEL_END: Final = 24  # reference openmpi.md 2.2.1: a label ends at this column
VALUE_INDENT: Final = LABEL_END + 2  # label, colon, space
UNKNOWN_WIDTH: Final = 78  # reference openmpi.md 2.2.1: of a terminal that does not say
TABLE_WIDTH: Final = 80  # arbitrary: what every screen and page has
GAP: Final = "  "  # arbitrary: between the columns of a table


def is_terminal() -> bool:
    """Whether standard output is a terminal. It may be closed."""
    return sys.stdout is not None and sys.stdout.isatty()


def wrap_width() -> int | None:
    """Columns to wrap at, or None when standard output is no terminal: that is never wrapped."""
    if not is_terminal():
        return None
    return shutil.get_terminal_size((UNKNOWN_WIDTH, 0)).columns


def table_width() -> int:
    """Columns that a table may take: those of the terminal or of `COLUMNS`, else 80."""
    return shutil.get_terminal_size((TABLE_WIDTH, 0)).columns


def wants_colour(choice: str, environ: Mapping[str, str]) -> bool:
    """Whether to colour what is written.

    Args:
        choice: `always`, `never` or `auto`: on a terminal that can, unless `NO_COLOR` is set.
        environ: the environment.
    """
    if choice != "auto":
        return choice == "always"
    refused = environ.get("NO_COLOR") or environ.get("TERM") == "dumb"
    return is_terminal() and not refused


def one_line(text: str) -> str:
    """A text with control characters, and bytes that are no text, as escapes."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def labelled(label: str, value: str, width: int | None) -> list[str]:
    """A value behind its label, or, without label, under the value before.

    Args:
        label: right-aligned; one too long for the column begins at the left margin.
        value: one line of text.
        width: to wrap at; None not to wrap.
    """
    head = f"{label:>{LABEL_END}}: " if label else " " * VALUE_INDENT
    if width is None or width <= VALUE_INDENT:
        return [(head + value).rstrip()]
    return textwrap.wrap(
        value,
        width,
        initial_indent=head,
        subsequent_indent=" " * VALUE_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [head.rstrip()]


def fits_width(cells: Sequence[str], width: int) -> bool:
    """Whether a row of a table is no wider than that."""
    return len(GAP.join(cells).rstrip()) <= width


def below(text: str, width: int) -> list[str]:
    """A text under the row of a table that it belongs to; words that are too long are broken."""
    return textwrap.wrap(
        text,
        max(width, len(2 * GAP) + 1),
        initial_indent=2 * GAP,
        subsequent_indent=2 * GAP,
        break_on_hyphens=False,
    )


def format_table(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Cells padded to the width of their columns; the last column is left as it is."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    widths[-1:] = [0]
    return [[f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)] for row in rows]
