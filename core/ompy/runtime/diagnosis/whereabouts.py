"""Where the ranks of a job are, in few lines: those that say the same are told of together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ompy.runtime.diagnosis.rank_spans import ranks_in_words

LINES: Final = 16  # arbitrary: what a person who has pressed Ctrl-C reads; a terminal has room
NOWHERE: Final = "in no line of the program's own"


class Whereabouts:
    """What the ranks that were asked have said."""

    def __init__(self, asked: Iterable[int]) -> None:
        """Nothing yet.

        Args:
            asked: ranks that are to say something.
        """
        self._silent = set(asked)
        self._said: dict[tuple[str, str], list[int]] = {}

    @property
    def complete(self) -> bool:
        """Whether all have said something."""
        return not self._silent

    def told(self, rank: int, line: str, waits: str) -> None:
        """A rank is at a line, where it waits for something; either may be empty."""
        self._silent.discard(rank)
        self._said.setdefault((f"at {line}" if line else NOWHERE, waits), []).append(rank)

    def lines(self) -> list[str]:
        """All of it, the lowest rank first.

        Where the ranks wait for too many different things, what each waits for is left out; where
        they are at too many different lines, the last of these are.
        """
        said = self._said
        if len(said) > LINES:
            said = {}
            for (line, _), ranks in self._said.items():
                said.setdefault((line, ""), []).extend(ranks)
        groups = sorted((sorted(ranks), line, waits) for (line, waits), ranks in said.items())
        found = []
        for ranks, line, waits in groups[:LINES]:
            waiting = f", waiting for {waits}" if waits else ""
            found.append(f"{_at(ranks)} {line}{waiting}")
        if len(groups) > LINES:
            rest = [rank for ranks, *_ in groups[LINES:] for rank in ranks]
            found.append(f"{_at(rest)} at {len(groups) - LINES} more lines")
        if self._silent:
            did = "has" if len(self._silent) == 1 else "have"
            who = ranks_in_words(self._silent)
            found.append(f"{who} {did} not said where, in native code perhaps")
        return found


def _at(ranks: list[int]) -> str:
    return f"{ranks_in_words(ranks)} {'was' if len(ranks) == 1 else 'were'}"
