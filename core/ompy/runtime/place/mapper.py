"""Which hardware threads each rank of one host gets (README.md). Pure.

Policies are Open MPI's (reference openmpi.md 2.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ompy.runtime.place.topology import (
    CORE,
    HWTHREAD,
    LEVELS,
    PlaceError,
    Threads,
    Topology,
)

NONE: Final = "none"
SLOT: Final = "slot"
NODE: Final = "node"
FILL: Final = "fill"
IN_ORDER: Final = frozenset({SLOT, NODE, CORE, HWTHREAD})  # mappings that take the next free units


class Rule(NamedTuple):
    """How the ranks of each host are placed.

    Attributes:
        bind: a level, or `NONE`.
        map: a level, `SLOT` or `NODE`.
        rank: a level, `SLOT`, `NODE` or `FILL`.
        elements: units that each rank takes.
        hwthreads: units are hardware threads, not cores.
        overload: more ranks than units may be placed.
        if_supported: where it cannot be done, ranks are not bound.
        cpus: the only threads that may be used, as a list; empty for all.
        topology: a description, or the path of a `/sys` tree; empty for the host's own.
        per_object: ranks that each object of the mapping takes, one after the other; 0: they are
            dealt over the objects in turn.
        listed: what a rank file gives each rank (`listed.join_slots`), in place of a mapping.
        report: each rank's place is told.
    """

    bind: str = NONE
    map: str = SLOT
    rank: str = SLOT
    elements: int = 1
    hwthreads: bool = False
    overload: bool = False
    if_supported: bool = False
    cpus: str = ""
    topology: str = ""
    report: bool = False
    per_object: int = 0
    listed: str = ""

    @property
    def unit(self) -> str:
        """The level of what ranks take."""
        return HWTHREAD if self.hwthreads or HWTHREAD in (self.bind, self.map) else CORE

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Rule:
        """The inverse of `_asdict`."""
        return cls(**values)


class Spot(NamedTuple):
    """What one rank has.

    Attributes:
        units: indices of units, in the order of the machine.
        threads: it may run on.
        place: index of the object of the mapping that it was taken of.
    """

    units: tuple[int, ...]
    threads: Threads
    place: int = 0


class Mapper:
    """The spots of one host. Those that were given back are given again."""

    def __init__(self, topology: Topology, rule: Rule) -> None:
        """Nobody has a place.

        Args:
            topology: of the host.
            rule: how; its binding is not `NONE`.

        Raises:
            PlaceError: the host has none of what the rule names.
        """
        self._topology = topology
        self._rule = rule
        self._units = topology.objects(rule.unit)
        self._targets = topology.objects(rule.bind)
        self._objects = self._unit_sets()
        if rule.rank in LEVELS:
            topology.objects(rule.rank)
        self._used = [0] * len(self._units)
        self._held = [0] * len(self._objects)  # ranks of each
        self._turn = 0

    def _unit_sets(self) -> list[list[int]]:
        """For each object that ranks are dealt over, its units."""
        everything = list(range(len(self._units)))
        if self._rule.map in IN_ORDER and not (self._rule.per_object and self._rule.map in LEVELS):
            return [everything]
        objects = self._topology.objects(self._rule.map)
        return [[n for n in everything if self._units[n] <= each] for each in objects]

    def give_spots(self, count: int) -> list[Spot]:
        """Spots for so many more ranks, in the order of ranks.

        Raises:
            PlaceError: there is not enough; then nobody has got anything.
        """
        before = self._used.copy(), self._held.copy(), self._turn
        spots: list[Spot] = []
        for _ in range(count):
            units, place = self._next_units()
            if not units:
                self._used, self._held, self._turn = before
                raise PlaceError(self._shortage(count))
            for unit in units:
                self._used[unit] += 1
            self._held[place] += 1
            spots.append(Spot(units, self._bound(units), place))
            self._turn += 1
        return self._ranked(spots)

    def release(self, spot: Spot) -> None:
        """A rank has ended."""
        for unit in spot.units:
            self._used[unit] -= 1
        self._held[spot.place] -= 1

    def _turns(self) -> list[int]:
        """The objects that the next rank may be on, the first choice first."""
        count, most = len(self._objects), self._rule.per_object
        if most:
            return [n for n in range(count) if self._held[n] < most][:1]
        return [(self._turn + step) % count for step in range(count)]

    def _next_units(self) -> tuple[tuple[int, ...], int]:
        """The units of the next rank, none if there are not enough, and the object they are of.

        They are free ones of the object whose turn it is, or of the next.
        """
        wanted = self._rule.elements
        turns = self._turns()
        for place in turns:
            free = [unit for unit in self._objects[place] if not self._used[unit]]
            if len(free) >= wanted:
                return tuple(free[:wanted]), place
        for place in turns if self._rule.overload else ():
            units = self._objects[place]
            if len(units) >= wanted:
                return tuple(sorted(sorted(units, key=self._used.__getitem__)[:wanted])), place
        return (), 0

    def _bound(self, units: Sequence[int]) -> Threads:
        """The objects of the binding in which units lie.

        Raises:
            PlaceError: one lies in none.
        """
        own = frozenset[int]().union(*(self._units[unit] for unit in units))
        found = frozenset[int]().union(*(each for each in self._targets if each & own))
        if not own <= found:
            raise PlaceError(f"not all of this host's cores have a {self._rule.bind}")
        return found

    def _shortage(self, count: int) -> str:
        rule, unit = self._rule, self._rule.unit
        left, has = self._used.count(0), len(self._units)
        each = f", {rule.elements} {unit}s each," if rule.elements > 1 else ""
        there = f"{left} of its {has} {unit}s are free" if left < has else f"it has {has} {unit}s"
        text = f"{count} rank(s){each} were to be bound on this host, and {there}"
        if len(self._objects) > 1 or rule.per_object:
            most = max(map(len, self._objects))
            text += f", at most {most} in one {rule.map}"
        if rule.per_object:
            text += f"; {rule.per_object} rank(s) on each of {len(self._objects)} {rule.map}(s)"
        return text

    def _ranked(self, spots: list[Spot]) -> list[Spot]:
        """Spots in the order of ranks, from the order in which they were mapped."""
        by = self._rule.rank
        if by in {SLOT, NODE}:
            return spots
        in_machine = sorted(spots)
        if by in {FILL, CORE, HWTHREAD}:
            return in_machine
        turns: list[tuple[int, int, Spot]] = []
        seen: dict[int, int] = {}
        for spot in in_machine:
            where = self._topology.numbers_of(by, self._units[spot.units[0]])
            number = where[0] if where else -1
            turns.append((seen.get(number, 0), number, spot))
            seen[number] = seen.get(number, 0) + 1
        return [spot for _, _, spot in sorted(turns, key=lambda turn: turn[:2])]
