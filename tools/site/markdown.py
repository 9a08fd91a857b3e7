"""Pieces of Markdown that generated pages are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def cell(text: object) -> str:
    """Text that a table can hold."""
    return re.sub(r"\s+", " ", str(text)).strip().replace("|", "\\|").replace("<", "&lt;")


def code(text: object) -> str:
    """Text as code in a table; empty text stays empty."""
    words = re.sub(r"\s+", " ", str(text)).strip().replace("|", "\\|").replace("`", "'")
    return f"`{words}`" if words else ""


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown already."""
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def block(text: str, language: str = "") -> str:
    """A fenced block."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def toctree(entries: Iterable[str], depth: int = 1) -> str:
    """A visible toctree."""
    return f"```{{toctree}}\n:maxdepth: {depth}\n\n" + "\n".join(entries) + "\n```\n"
