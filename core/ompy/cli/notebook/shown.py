"""What ranks write, line by line below the cell."""

from __future__ import annotations

import sys
from typing import Final

JOB: Final = -1  # in place of a rank: the launcher
_PREFIX: Final = "ompy-run: "


class Shown:
    """Shows the lines of ranks with their ranks in front, or those of one rank as they are."""

    def __init__(self, only: int | None) -> None:
        """Nothing yet.

        Args:
            only: the rank whose output is shown; None for all.
        """
        self._only = only
        self._begun: dict[tuple[int, bool], str] = {}

    def write_lines(self, rank: int, data: bytes, *, errors: bool) -> None:
        """A rank, or the job, has written something.

        Args:
            rank: it, or `JOB`.
            data: what; a part of a line is kept until its end has come.
            errors: to standard error.
        """
        text = self._begun.pop((rank, errors), "") + data.decode(errors="replace")
        *lines, rest = text.split("\n")
        for line in lines:
            self._show(rank, line, errors=errors)
        if rest:
            self._begun[rank, errors] = rest

    def finish(self) -> None:
        """Show lines that have no end."""
        for (rank, errors), text in sorted(self._begun.items()):
            self._show(rank, text, errors=errors)
        self._begun.clear()

    def _show(self, rank: int, line: str, *, errors: bool) -> None:
        stream = sys.stderr if errors else sys.stdout
        if rank == JOB:
            print(line.removeprefix(_PREFIX), file=stream, flush=True)
        elif self._only is None:
            print(f"[{rank}] {line}", file=stream, flush=True)
        elif self._only == rank:
            print(line, file=stream, flush=True)
