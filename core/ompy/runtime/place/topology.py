"""What a host's processors are: hardware threads, cores, caches, NUMA nodes and packages. Pure.

A hardware thread has the system's number. All other objects are numbered here, in the order of the
machine: packages by the least thread in them, within these NUMA nodes, caches, cores, threads.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

HWTHREAD: Final = "hwthread"
CORE: Final = "core"
NUMA: Final = "numa"
PACKAGE: Final = "package"
CACHES: Final = ("l1cache", "l2cache", "l3cache")
LEVELS: Final = (
    HWTHREAD,
    CORE,
    *CACHES,
    NUMA,
    PACKAGE,
)  # reference openmpi.md 2.4, innermost first
THREADS_MAX: Final = 1 << 20  # numbers below; arbitrary: Linux has at most 8192 on x86
_OUTERMOST_FIRST: Final = (PACKAGE, NUMA, *reversed(CACHES), CORE)
Threads = frozenset[int]
Groups = Mapping[str, Iterable[Threads]]


class PlaceError(Exception):
    """Ranks cannot be placed as was asked for; the text says what there is."""


class Topology(NamedTuple):
    """The threads that may be used, and what they are parts of.

    Attributes:
        levels: objects by level, in the order of the machine, each as its threads. A level that the
            host has none of is missing; `HWTHREAD`, `CORE`, `NUMA` and `PACKAGE` never are.
    """

    levels: Mapping[str, tuple[Threads, ...]]

    @property
    def threads(self) -> Threads:
        """All of them."""
        return frozenset[int]().union(*self.levels[PACKAGE])

    def objects(self, level: str) -> tuple[Threads, ...]:
        """The objects of a level.

        Raises:
            PlaceError: there are none.
        """
        found = self.levels.get(level)
        if not found:
            there = ", ".join(name for name in LEVELS if self.levels.get(name))
            raise PlaceError(f"this host's topology has no {level}; it has {there}")
        return found

    def numbers_of(self, level: str, threads: Threads) -> list[int]:
        """Which objects of a level have some of these threads."""
        objects = self.levels.get(level, ())
        return [number for number, each in enumerate(objects) if each & threads]


def topology_of(groups: Groups, allowed: Collection[int]) -> Topology:
    """Put objects in order, without what may not be used.

    Args:
        groups: threads of each object, by level.
        allowed: numbers of threads.

    Raises:
        PlaceError: none is allowed.
    """
    left = frozenset(allowed)
    if not left:
        raise PlaceError("no hardware thread may be used")
    found = {level: _within(groups.get(level, ()), left) for level in _OUTERMOST_FIRST}
    for level in (PACKAGE, NUMA, CORE):
        rest = left.difference(*found[level])
        found[level] += [frozenset((n,)) for n in rest] if level == CORE else [rest] * bool(rest)
    order = sorted(left, key=lambda thread: _place_of(thread, found))
    place = {thread: index for index, thread in enumerate(order)}
    levels = {
        level: tuple(sorted(found[level], key=lambda each: min(map(place.__getitem__, each))))
        for level in _OUTERMOST_FIRST
        if found[level]
    }
    return Topology({HWTHREAD: tuple(frozenset((n,)) for n in order), **levels})


def _within(objects: Iterable[Threads], allowed: Threads) -> list[Threads]:
    """What is left of each, once; of objects that overlap the first counts."""
    found: list[Threads] = []
    seen: set[int] = set()
    for each in objects:
        part = (each & allowed) - seen
        if part:
            found.append(part)
            seen |= part
    return found


def _place_of(thread: int, found: Mapping[str, Sequence[Threads]]) -> tuple[int, ...]:
    """Where it is in the machine, to be compared."""
    place = []
    for level in _OUTERMOST_FIRST:
        place.append(next((min(each) for each in found[level] if thread in each), -1))
    return (*place, thread)


def read_topology(allowed: Collection[int], root: str = "/sys") -> Topology:
    """The topology that a Linux kernel tells of.

    Args:
        allowed: the threads that may be used.
        root: of its `/sys` tree, which may be a copy.

    Raises:
        PlaceError: none is allowed, or a file has something else than the kernel writes.
    """
    cpus = os.path.join(root, "devices/system/cpu")
    groups: dict[str, list[Threads]] = {level: [] for level in _OUTERMOST_FIRST}
    seen: dict[str, set[int]] = {level: set() for level in _OUTERMOST_FIRST}
    for thread in sorted(allowed):
        cpu = os.path.join(cpus, f"cpu{thread}")
        for level, names in _TOPOLOGY_FILES.items():
            if thread not in seen[level]:
                _keep(level, _first_list(os.path.join(cpu, "topology"), names), groups, seen)
        if any(thread not in seen[level] for level in CACHES):
            for level, threads in _caches_of(os.path.join(cpu, "cache")):
                _keep(level, threads, groups, seen)
    for node in _entries(os.path.join(root, "devices/system/node"), "node"):
        _keep(NUMA, _first_list(node, ("cpulist",)), groups, seen)
    return topology_of(groups, allowed)


# Linux Documentation/admin-guide/cputopology: the newer name first
_TOPOLOGY_FILES: Final = {
    CORE: ("core_cpus_list", "thread_siblings_list"),
    PACKAGE: ("package_cpus_list", "core_siblings_list"),
}


def _keep(
    level: str, threads: Threads, groups: dict[str, list[Threads]], seen: dict[str, set[int]]
) -> None:
    if threads and not threads <= seen[level]:
        groups[level].append(threads)
        seen[level] |= threads


def _caches_of(folder: str) -> list[tuple[str, Threads]]:
    """The caches of a thread that hold data, by level."""
    found = []
    for index in _entries(folder, "index"):
        level = f"l{_text(os.path.join(index, 'level'))}cache"
        if level in CACHES and _text(os.path.join(index, "type")) != "Instruction":
            found.append((level, _first_list(index, ("shared_cpu_list",))))
    return found


def _entries(folder: str, begin: str) -> list[str]:
    """Paths in a folder whose names are a word and a number, in the order of the numbers."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    rests = [name.removeprefix(begin) for name in names if name.startswith(begin)]
    numbers = sorted(filter(str.isdecimal, rests), key=int)
    return [os.path.join(folder, begin + number) for number in numbers]


def _first_list(folder: str, names: Sequence[str]) -> Threads:
    """The threads in the first of these files that there is; none if there is none."""
    for name in names:
        path = os.path.join(folder, name)
        text = _text(path)
        if text:
            try:
                return parse_cpu_list(text)
            except ValueError as problem:
                raise PlaceError(f"{path}: {problem}") from None
    return frozenset()


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def parse_cpu_list(text: str) -> Threads:
    """The numbers of `0-3,8`, as Linux writes sets.

    Raises:
        ValueError: it is no such list.
    """
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        ends = [first, last] if dash else [first]
        if not all(end.isascii() and end.isdecimal() and len(end) <= 9 for end in ends):
            raise ValueError(f"{text[:40]!r} is no list of processors, as 0-3,8 is one")
        low, high = int(ends[0]), int(ends[-1])
        if low > high or high >= THREADS_MAX:
            raise ValueError(f"{text[:40]!r} is no list of processors: {part.strip()} has none")
        found.update(range(low, high + 1))
    return frozenset(found)


def cpu_list(threads: Iterable[int]) -> str:
    """Numbers as Linux writes sets: `0-3,8`."""
    runs: list[list[int]] = []
    for number in sorted(threads):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
