"""Byte counts as people write them: `64k`."""

from __future__ import annotations

from typing import Final

import click

from ompy.cli.launch.command_line import counted, shown

SIZE_MAX: Final = 1 << 63  # bytes; Linux: what ssize_t has no room for
_FACTORS: Final = {"k": 1024, "m": 1024**2, "g": 1024**3}


def parse_bytes(text: str) -> int:
    """A byte count such as `512`, `64k` or `8m`.

    Raises:
        click.BadParameter: it is not one.
    """
    word = text.strip().lower()
    digits, factor = (word[:-1], _FACTORS[word[-1]]) if word[-1:] in _FACTORS else (word, 1)
    count = counted(digits)
    if count is None or count * factor >= SIZE_MAX:
        raise click.BadParameter(f"{shown(word)} is not a size such as 512, 64k or 8m")
    return count * factor
