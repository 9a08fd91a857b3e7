"""Long sweeps in parts, on several days: what is kept of each, and the figures of all together.

A part is a range of the worlds, passed with one commit. `docs/sweeps/NAME.json` has the parts; a
new one takes the place of those that it overlaps. `docs/NAME-sweep.md` shows them as one sweep and
says with which commits they passed.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

Sums = dict[str, Counter[str]]  # by class of worlds


@dataclass(frozen=True)
class Part:
    """Worlds that have passed.

    Attributes:
        first: of the worlds.
        last: of them.
        commit: of the tree.
        date: on which they passed, UTC.
        seconds: of processor time.
        sums: what was counted, by class.
    """

    first: int
    last: int
    commit: str
    date: str
    seconds: float
    sums: Sums

    def overlaps(self, other: Part) -> bool:
        """Whether a world is in both."""
        return self.first <= other.last and other.first <= self.last

    def worlds(self) -> int:
        """How many there are."""
        return self.last - self.first + 1


def bounds(text: str, worlds: int) -> range:
    """The worlds of a part written as `2/4`, the second of four.

    Raises:
        ValueError: it is none.
    """
    one, _, of = text.partition("/")
    if not 1 <= int(one) <= int(of) <= worlds:
        raise ValueError(f"{text!r} is no part; one is 1/4")
    return range((int(one) - 1) * worlds // int(of), int(one) * worlds // int(of))


def read(path: Path) -> list[Part]:
    """The parts that have passed, by their worlds."""
    if not path.exists():
        return []
    parts = [Part(**one) for one in json.loads(path.read_text())]
    for part in parts:
        for name, counts in part.sums.items():
            part.sums[name] = Counter(counts)
    return parts


def enter(path: Path, part: Part) -> list[Part]:
    """Keep a part in the place of those that it overlaps. Returns all."""
    others = [one for one in read(path) if not one.overlaps(part)]
    parts = sorted([*others, part], key=lambda one: one.first)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([vars(one) for one in parts], indent=1, sort_keys=True) + "\n")
    return parts


def commits(parts: list[Part]) -> str:
    """With which commits how many worlds passed, in a line."""
    counts: Counter[tuple[str, str]] = Counter()
    for part in parts:
        counts[part.commit, part.date] += part.worlds()
    named = [f"{one} of {date} ({worlds:,} worlds)" for (one, date), worlds in counts.items()]
    return f"commits {', '.join(named)}"


def together(parts: list[Part]) -> tuple[float, Sums]:
    """Seconds and sums of all parts."""
    sums: Sums = {}
    for part in parts:
        for name, counts in part.sums.items():
            sums.setdefault(name, Counter()).update(counts)
    return sum(part.seconds for part in parts), sums
