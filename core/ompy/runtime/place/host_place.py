"""The places of one host's ranks, as its agent keeps them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from ompy.runtime.connections.control import PLACE
from ompy.runtime.place.listed import slot_threads, split_slots
from ompy.runtime.place.mapper import NONE, Mapper, Rule, Spot
from ompy.runtime.place.synthetic import describes_topology, parse_synthetic
from ompy.runtime.place.topology import (
    CORE,
    HWTHREAD,
    NUMA,
    PACKAGE,
    PlaceError,
    Threads,
    Topology,
    cpu_list,
    parse_cpu_list,
    read_topology,
    topology_of,
)

ANYWHERE: Final[Threads] = frozenset()


class HostPlace:
    """Who has which hardware threads of this host."""

    def __init__(self, rule: Rule, allowed: Threads | None = None) -> None:
        """Nobody has any.

        Args:
            rule: how ranks are placed.
            allowed: threads that may be used; those of this process if nothing is said.

        Raises:
            PlaceError: it cannot be done on this host.
        """
        self._rule = rule
        self.topology = host_topology(rule, allowed)
        self._spots: dict[int, Spot] = {}
        self._mapper: Mapper | None = None
        self._listed: dict[int, str] = {}
        if rule.bind != NONE:
            try:
                if rule.listed:
                    self._listed = split_slots(rule.listed)
                else:
                    self._mapper = Mapper(self.topology, rule)
                if not rule.topology:
                    _ensure_binding_works()
            except PlaceError:
                if not rule.if_supported:
                    raise
                self._mapper, self._listed = None, {}

    def place_ranks(self, ranks: Sequence[int]) -> None:
        """Find places for more ranks.

        Args:
            ranks: their numbers, rising.

        Raises:
            PlaceError: there is no place for all of them; the text says what is to be done.
        """
        if self._listed:
            self._place_listed(ranks)
        if self._mapper is None:
            return
        try:
            spots = self._mapper.give_spots(len(ranks))
        except PlaceError as problem:
            if self._rule.if_supported:
                return
            raise PlaceError(f"{problem}: {self._advice()}") from None
        self._spots.update(zip(ranks, spots, strict=True))

    def _place_listed(self, ranks: Sequence[int]) -> None:
        """What the rank file gives: ranks that it does not name are not bound."""
        for rank in ranks:
            if rank not in self._listed:
                continue
            try:
                threads = slot_threads(self.topology, self._rule.unit, self._listed[rank])
            except PlaceError as problem:
                if self._rule.if_supported:
                    continue
                raise PlaceError(f"the rank file, rank {rank}: {problem}") from None
            self._spots[rank] = Spot((), threads)

    def _advice(self) -> str:
        """What is to be done if there is not enough."""
        levels, rule = self.topology.levels, self._rule
        threads = rule.unit == CORE and len(levels[HWTHREAD]) > len(levels[CORE])
        choices = ["fewer ranks"]
        if rule.elements > 1:
            choices.append(f"fewer {rule.unit}s each")
        if threads:
            choices.append("--use-hwthread-cpus")
        return f"{', '.join(choices)}, or --bind-to {rule.bind}:overload-allowed"

    def forget_rank(self, rank: int) -> None:
        """It has ended: what it had is free, for ranks that are started later."""
        spot = self._spots.pop(rank, None)
        if spot is not None and self._mapper is not None:
            self._mapper.release(spot)

    def threads_of(self, rank: int) -> Threads:
        """Those it is to be bound to; none if it is not."""
        spot = self._spots.get(rank)
        return spot.threads if spot is not None else ANYWHERE

    def variables_of(self, rank: int) -> dict[str, str]:
        """What it is told: which it is of those that may run on some of its threads."""
        spot = self._spots.get(rank)
        if spot is None:
            return {}
        sharers = [n for n, other in self._spots.items() if other.threads & spot.threads]
        return {PLACE: f"{sorted(sharers).index(rank)}/{len(sharers)}"}

    def report_of(self, rank: int) -> str:
        """Its place in words, if they are wanted."""
        return self.describe_rank(rank) if self._rule.report else ""

    def describe_rank(self, rank: int) -> str:
        """Its place in words."""
        spot = self._spots.get(rank)
        if spot is None:
            return f"is not bound; it may run on {_numbers('cpu', self.topology.threads)}"
        threads = spot.threads
        parts = [_objects(self.topology, level, threads) for level in (PACKAGE, NUMA, CORE)]
        parts.append(_numbers("cpu", threads))
        return f"is bound to {', '.join(parts)}: {drawn(self.topology, threads)}"


def host_topology(rule: Rule, allowed: Threads | None = None) -> Topology:
    """The topology that a rule is about: this host's, or the one that it describes.

    Args:
        rule: it.
        allowed: threads that may be used; those of this process if nothing is said.

    Raises:
        PlaceError: it cannot be understood, or nothing of it may be used.
    """
    only: Threads | None = None
    if rule.cpus:
        try:
            only = parse_cpu_list(rule.cpus)
        except ValueError as problem:
            raise PlaceError(f"the set of processors: {problem}") from None
    if rule.topology and describes_topology(rule.topology):
        described = parse_synthetic(rule.topology)
        return described if only is None else _restricted(described, only)
    if rule.topology:
        allowed = _online(rule.topology)
    elif allowed is None:
        allowed = frozenset(os.sched_getaffinity(0))
    if only is not None:
        allowed = _within(allowed, only)
    return read_topology(allowed, rule.topology or "/sys")


def _restricted(topology: Topology, only: Threads) -> Topology:
    return topology_of(topology.levels, _within(topology.threads, only))


def _within(allowed: Threads, only: Threads) -> Threads:
    """Those of a set that may be used.

    Raises:
        PlaceError: none may.
    """
    if not allowed & only:
        text = f"none of the processors {cpu_list(only)} may be used on this host"
        raise PlaceError(f"{text}, which has {cpu_list(allowed)}")
    return allowed & only


def _online(root: str) -> Threads:
    """All threads of a copied `/sys` tree."""
    path = os.path.join(root, "devices/system/cpu/online")
    try:
        with open(path, encoding="ascii") as file:
            return parse_cpu_list(file.read().strip())
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise PlaceError(f"{path}: {why}; a topology is a description or a /sys tree") from None


def bind_process(pid: int, threads: Threads) -> None:
    """Have a process with one thread run on these alone; without any nothing changes.

    Raises:
        OSError: the host does not let it: a thread went offline, or a cpuset has changed.
    """
    if not threads:
        return
    try:
        os.sched_setaffinity(pid, threads)
    except OSError as problem:
        text = f"it cannot be bound to {_numbers('cpu', threads)} ({problem.strerror})"
        raise OSError(problem.errno, text) from None


def _ensure_binding_works() -> None:
    """See whether this system lets a process be bound: nothing changes.

    Raises:
        PlaceError: it does not.
    """
    try:
        os.sched_setaffinity(0, os.sched_getaffinity(0))
    except OSError as problem:
        text = f"this host does not let processes be bound ({problem.strerror})"
        raise PlaceError(text) from None


def drawn(topology: Topology, threads: Threads) -> str:
    """The machine as a line: `[B/.][./.]`, a letter for each hardware thread that may be used."""
    packages = []
    for package in topology.levels[PACKAGE]:
        cores = [core for core in topology.levels[CORE] if core <= package]
        packages.append("/".join(_letters(core, threads) for core in cores))
    return "".join(f"[{package}]" for package in packages)


def _letters(core: Threads, threads: Threads) -> str:
    return "".join("B" if thread in threads else "." for thread in sorted(core))


def _objects(topology: Topology, level: str, threads: Threads) -> str:
    return _numbers(level, topology.numbers_of(level, threads))


def _numbers(what: str, numbers: Sequence[int] | Threads) -> str:
    plural = "s" if len(numbers) > 1 and what != NUMA else ""
    return f"{what}{plural} {cpu_list(numbers)}"
