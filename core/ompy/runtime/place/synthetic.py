"""Topologies that are only described, in hwloc's notation: `pack:2 numa:1 core:4 pu:2`.

Each word is a kind of object and how many of it are in each object of the word before. Hardware
threads are numbered in the order of the machine. Words that hwloc has beside these, `memory=`
and the like in parentheses, are read over.
"""

from __future__ import annotations

import re
from typing import Final

from ompy.runtime.place.topology import (
    CACHES,
    CORE,
    HWTHREAD,
    NUMA,
    PACKAGE,
    PlaceError,
    Threads,
    Topology,
    topology_of,
)

# hwloc's documentation, "Synthetic topologies": names of types
KINDS: Final = {
    **dict.fromkeys(("pack", "package", "socket"), PACKAGE),
    **dict.fromkeys(("numa", "numanode", "node"), NUMA),
    **{short: level for level in CACHES for short in (level, level[:2], f"{level[:2]}d")},
    "core": CORE,
    "pu": HWTHREAD,
    **dict.fromkeys(("machine", "die", "group"), ""),
}
THREADS_MAX: Final = 1 << 16  # arbitrary: eight times what Linux runs on x86
_WORD: Final = re.compile(r"([a-z0-9]+):([0-9]{1,5})(?:\([^()]*\))?|\[([a-z]+)(?:\([^()]*\))?\]")


def describes_topology(text: str) -> bool:
    """Whether a text is meant as a description, rather than as the name of a folder."""
    return ":" in text and "/" not in text


def parse_synthetic(text: str) -> Topology:
    """The topology that a description is of.

    Raises:
        PlaceError: it is none.
    """
    levels: list[tuple[str, int]] = []
    for word in text.lower().split():
        match = _WORD.fullmatch(word)
        kind = (match.group(1) or match.group(3)) if match else ""
        if match is None or kind not in KINDS:
            raise PlaceError(
                f"{word[:40]!r} is no word of a topology, as in 'pack:2 numa:1 core:4 pu:2'; kinds "
                f"are {', '.join(KINDS)}"
            )
        levels.append((KINDS[kind], int(match.group(2) or 1)))
    return _built(levels, text)


def _built(levels: list[tuple[str, int]], text: str) -> Topology:
    total = 1
    for _, count in levels:
        total *= count
        if not 1 <= total <= THREADS_MAX:
            raise PlaceError(f"{text[:80]!r} has {total} objects; 1 to {THREADS_MAX} are possible")
    if not levels:
        raise PlaceError("the description of a topology is empty")
    groups: dict[str, list[Threads]] = {}
    parts = 1
    for level, count in levels:
        parts *= count
        if level and level != HWTHREAD:
            each = total // parts
            objects = [frozenset(range(n * each, (n + 1) * each)) for n in range(parts)]
            groups.setdefault(level, []).extend(objects)
    return topology_of(groups, range(total))
