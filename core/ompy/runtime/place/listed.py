"""The processors that a rank file gives each rank: `slot=0:1`, `slot=1,3`, `slot=0-2`. Pure.

The notation is Open MPI's (reference openmpi.md 2.4): numbers of cores of the host, or of a package
behind its number; hardware threads where these are counted. All are logical numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ompy.runtime.place.topology import (
    PACKAGE,
    THREADS_MAX,
    PlaceError,
    Threads,
    Topology,
    cpu_list,
    parse_cpu_list,
)

ALL: Final = "*"
EXAMPLES: Final = "0:1 (package 0, core 1), 0:*, 1,3 or 0-2"
_BETWEEN_RANKS: Final = " "
_AFTER_RANK: Final = "="


class Part(NamedTuple):
    """What stands between semicolons.

    Attributes:
        package: whose cores they are; None for the whole host's.
        numbers: of cores, in it; none for all.
    """

    package: int | None
    numbers: tuple[int, ...]


def parse_slots(text: str) -> list[Part]:
    """Take the value of `slot=` apart.

    Raises:
        ValueError: it cannot be understood; the text says what is.
    """
    parts = []
    for piece in text.split(";"):
        before, colon, after = piece.rpartition(":")
        try:
            package = _number(before) if colon else None
            parts.append(Part(package, () if after == ALL else tuple(_numbers(after))))
        except ValueError:
            raise ValueError(f"slot={text}: expected {EXAMPLES}") from None
    return parts


def _number(text: str) -> int:
    found = _numbers(text)
    if len(found) != 1:
        raise ValueError
    return found[0]


def _numbers(text: str) -> list[int]:
    """Raises ValueError: it is no list of numbers below `THREADS_MAX`, or an empty one."""
    found = sorted(parse_cpu_list(text))
    if not found or found[-1] >= THREADS_MAX:
        raise ValueError
    return found


def join_slots(slots: Mapping[int, str]) -> str:
    """What agents are told: the values of `slot=` by rank, in one text."""
    return _BETWEEN_RANKS.join(f"{rank}{_AFTER_RANK}{text}" for rank, text in slots.items())


def split_slots(text: str) -> dict[int, str]:
    """The inverse of `join_slots`."""
    pairs = (each.split(_AFTER_RANK, 1) for each in text.split(_BETWEEN_RANKS) if each)
    return {int(rank): slots for rank, slots in pairs}


def slot_threads(topology: Topology, unit: str, slots: str) -> Threads:
    """The hardware threads that a value of `slot=` means on a host.

    Args:
        topology: of the host.
        unit: what is counted: cores or hardware threads.
        slots: the value.

    Raises:
        PlaceError: the host does not have them.
    """
    units, packages = topology.objects(unit), topology.objects(PACKAGE)
    found: set[int] = set()
    for part in parse_slots(slots):
        inside: Sequence[Threads] = units
        where = "this host"
        if part.package is not None:
            if part.package >= len(packages):
                there = cpu_list(range(len(packages)))
                raise PlaceError(f"slot={slots}: there is no package {part.package}, but {there}")
            where = f"package {part.package}"
            inside = [each for each in units if each <= packages[part.package]]
        for number in part.numbers or range(len(inside)):
            if number >= len(inside):
                has = f"{where} has {unit}s {cpu_list(range(len(inside)))}"
                raise PlaceError(f"slot={slots}: {has}, and no {number}")
            found |= inside[number]
    return frozenset(found)
