"""Which world to try next, so that every schedule comes up and few come up twice.

A world is told by a *constraint*: what is chosen at some of its choices. The first has none. Each
world that was run says what its events could have been instead (`exchange.races`); each of these
becomes a constraint: all that stood before the event, and what the other value needs. So the
schedules below a constraint are split by the first event at which they differ from the world that
was run with it. Depth first: whatever is below a constraint is done before what is beside it, and
what a constraint that is done already has covered is not tried again.

Pure. Source: the races and their reversal as in dynamic partial-order reduction (Flanagan and
Godefroid, POPL 2005); that a constraint holds what the reversed event depends on, as the wake-up
trees of optimal DPOR (Abdulla et al., POPL 2014) do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

from ompy.runtime.exploration.boxes import Operation
from ompy.runtime.exploration.events import SEES, Event, Race, Value

Constraint = dict[Operation, Value]


class Schedule(NamedTuple):
    """What a world that was run has shown.

    Attributes:
        events: the choices, in their order.
        races: what they could have been instead, but for what is known.
        saved: points of it that others may begin at, by how many choices were made before.
    """

    events: Sequence[Event]
    races: Sequence[Race]
    saved: Sequence[tuple[int, Any]] = ()

    def past(self, bits: int) -> Constraint:
        """The events of a past that is closed, and what was chosen there."""
        return {event.key: event.value for event in self.events if bits >> event.number & 1}


class Node:
    """A constraint, and what is known of the schedules below it.

    Attributes:
        constraint: what is chosen.
        parent: the node that it splits; None for the first.
        key: the choice at which it differs from that one's world; None if from no one choice on.
    """

    def __init__(
        self, constraint: Constraint, parent: Node | None, key: Operation | None = None
    ) -> None:
        self.constraint = constraint
        self.parent = parent
        self.key = key
        self.begin: Any = None  # the last saved point of the parent's world that it may begin at
        self.saved: Sequence[tuple[int, Any]] = ()  # points of its own world
        self.plain: set[tuple[Operation, Value]] = set()  # made below it, with no more than these
        self.values: Constraint = {}  # what was chosen in the world that was run with it, in order
        self.order: dict[Operation, int] = {}  # the place of each of these
        self.left = 1  # itself and nodes below it that are not done
        self.done: list[Constraint] = []  # below it
        self.tried: dict[Operation, list[Constraint]] = {}  # by where they differ from its world

    def prefix(self, key: Operation) -> Constraint:
        """What stood before a choice in its world."""
        return dict(islice(self.values.items(), self.order[key]))


def _is_plain(
    race: Race, node: Node, schedule: Schedule, apart: dict[Node, list[tuple[int, int]]]
) -> bool:
    """Whether what a race needs is no other than what stood before its choice in a node's world.

    Args:
        race: of a schedule.
        node: whose world it would split.
        schedule: the race's.
        apart: by node: events of the schedule that are others in its world, and their places there.
    """
    if node not in apart:
        values, order = node.values, node.order
        apart[node] = [
            (event.number, order[event.key])
            for event in schedule.events
            if values.get(event.key, event.value) != event.value
        ]
    end = node.order[race.event.key]
    return not any(race.past >> one & 1 and place < end for one, place in apart[node])


def _place_of_change(node: Node, key: Operation, chosen: Constraint) -> int:
    """Up to how many choices a world with these is the same as a node's.

    A read that is to come before a choice has to be there when that is made, wherever it came in
    the node's world.
    """
    places = [node.order[key]]
    for read, value in chosen.items():
        if value[0] == SEES and node.values.get(read) != value and value[1:] in node.order:
            places.append(node.order[value[1:]])
    return min(places)


def digest_of(values: Constraint) -> bytes:
    """The same for the same choices, of whatever order."""
    return blake2b(repr(sorted(values.items())).encode(), digest_size=16).digest()


def covers(one: Mapping[Operation, Value], other: Mapping[Operation, Value]) -> bool:
    """Whether all schedules with the other constraint are schedules with this one."""
    return len(one) <= len(other) and one.items() <= other.items()


class KnownRaces:
    """Races of the world run with a node that would lead to nothing new.

    Such a one splits a node above, at a choice whose value is part of this one's constraint because
    it stood there before the choice that was changed. So all that stood before it there stands in
    this world, too, and what was made with that and the other value covers whatever else.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._key: Operation | None = None
        self._above: Node | None = None  # that a race of this key would split, if it is such a one

    def __call__(self, key: Operation, value: Value) -> bool:
        """Whether a race is one."""
        if key != self._key:
            self._key, self._above = key, self._split_node(key)
        above = self._above
        return above is not None and (above.values[key] == value or (key, value) in above.plain)

    def _split_node(self, key: Operation) -> Node | None:
        below: Node | None = None
        above = self._node
        while key in above.constraint:
            assert above.parent is not None, "the first has no constraint"
            below, above = above, above.parent
        if below is None or below.key is None or key not in above.order:
            return None
        return above if above.order[key] <= above.order[below.key] else None


class Search:
    """The worlds of one program, until none is left.

    Attributes:
        worlds: how many were run.
        depth: choices beyond so many of a world keep their first value; None for no such bound.
        shallow: there were some that could have had another.
        seen: of each schedule its digest.
        root: the node that all others are below of.
        waiting: nodes that are known and were not run, the next one last.
    """

    def __init__(self, depth: int | None = None) -> None:
        """Nothing is known yet."""
        self.worlds = 0
        self.depth = depth
        self.shallow = False
        self.seen: set[bytes] = set()
        self.root = Node({}, None)
        self.waiting = [self.root]

    @property
    def schedules(self) -> int:
        """How many different ones the worlds were."""
        return len(self.seen)

    @property
    def left(self) -> int:
        """How many worlds are known that were not run."""
        return len(self.waiting)

    def take_node(self) -> Node | None:
        """A world to be run; None if none can be said now: others are under way, or all are done.

        Each has to be given back by `report_world`.
        """
        while self.waiting:
            node = self.waiting.pop()
            if not self._is_covered(node):
                return node
            _end(node)
        return None

    def drop_node(self, node: Node) -> None:
        """A world that was taken cannot be: there is no schedule with its constraint."""
        _end(node)

    def give_back(self, node: Node) -> None:
        """A world that was taken was not run to its end: it is the next one again."""
        self.waiting.append(node)

    def report_world(self, node: Node, schedule: Schedule) -> bool:
        """A world that was taken has been run. Returns whether its schedule is a new one."""
        self.worlds += 1
        events = schedule.events
        node.values = {event.key: event.value for event in events}
        node.order = {event.key: place for place, event in enumerate(events)}
        seen = digest_of(node.values)
        node.saved = schedule.saved
        new = seen not in self.seen
        if new:
            self.seen.add(seen)
            apart: dict[Node, list[tuple[int, int]]] = {}
            # the last on top: it shares most with this world
            for race in sorted(schedule.races, key=lambda one: node.order[one.event.key]):
                if self.depth is None or node.order[race.event.key] < self.depth:
                    self._split(node, schedule, race, apart)
                else:
                    self.shallow = True
        _end(node)
        return new

    def _split(
        self,
        node: Node,
        schedule: Schedule,
        race: Race,
        apart: dict[Node, list[tuple[int, int]]],
    ) -> None:
        key = race.event.key
        above: Node = node
        while key in above.constraint:
            assert above.parent is not None, "the first has no constraint"
            above = above.parent
        if above.values.get(key) == race.value:
            return  # its own world has that
        if (key, race.value) in above.plain and _is_plain(race, above, schedule, apart):
            return  # it was tried with no more than what stood before
        chosen = {**schedule.past(race.past), key: race.value}
        made = self._joined(above, key, chosen)
        if made is None:  # too different from that world: what it needs, and no more
            above, made = self.root, chosen
        tried = above.tried.setdefault(key, [])
        if any(covers(one, made) for one in tried):
            return
        tried.append(made)
        below = Node(made, above, key if made is not chosen else None)
        if made is not chosen:
            place = _place_of_change(above, key, chosen)
            below.begin = next(
                (one for at, one in reversed(above.saved) if at <= place), above.begin
            )
            if len(made) == len(above.constraint.keys() | above.prefix(key).keys()) + 1:
                above.plain.add((key, race.value))
        over: Node | None = above
        while over is not None:
            over.left += 1
            over = over.parent
        self.waiting.insert(0 if made is chosen else len(self.waiting), below)

    def _joined(self, above: Node, key: Operation, chosen: Constraint) -> Constraint | None:
        """A constraint below a node: what stood before in its world as well. None: impossible."""
        if key not in above.order:
            return None
        before = {**above.constraint, **above.prefix(key)}
        made = {**before, **chosen}
        return made if made == {**chosen, **before} else None

    def _is_covered(self, node: Node) -> bool:
        above = node.parent
        while above is not None:
            if any(covers(one, node.constraint) for one in above.done):
                return True
            above = above.parent
        return False


def _end(node: Node) -> None:
    """A node is done, and by that perhaps those above it."""
    over: Node | None = node
    while over is not None:
        over.left -= 1
        if not over.left and over.parent is not None:
            over.parent.done.append(over.constraint)
            over.done.clear()
        over = over.parent
