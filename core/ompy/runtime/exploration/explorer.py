"""Runs the worlds of a program until all its schedules are known, one fails, or a bound is reached.

Then makes a schedule that fails as short as it can be: no choice of it can be left out.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ompy.runtime.exploration.events import NOTHING, Event, Race
from ompy.runtime.exploration.search import Node, Schedule, Search
from ompy.runtime.exploration.trunk import DIVERGED, UNFIT, Result, Trunk, result_of
from ompy.runtime.simulation.simulated_world import Scenario

WELL: Final = "ended"  # kind of a world in which all went well
TRIALS: Final = 300  # worlds to shorten a schedule; arbitrary: some seconds


class Bounds(NamedTuple):
    """When to give up.

    Attributes:
        worlds: at most so many are run.
        seconds: no world is begun after so long.
        jobs: worlds at a time.
    """

    worlds: int
    seconds: float
    jobs: int


class Failure(NamedTuple):
    """A schedule that fails.

    Attributes:
        result: of its world.
        choices: what has to be chosen for it; all else is as it comes.
        turn: the choice that has been seen to decide; None if none was.
        instead: what was chosen there in a world that ended well, but for that the same.
        tried: there are other schedules, of which none ended well.
    """

    result: Result
    choices: list[Event]
    turn: Event | None
    instead: Race | None
    tried: bool = False


class Explored(NamedTuple):
    """What is known of a program in one mode of buffering.

    Attributes:
        worlds: were run.
        schedules: different ones.
        left: worlds that are known and were not run; 0 if all were.
        bounded: a poll might have found nothing more often than was tried.
        failure: the schedule that fails, if one does.
    """

    worlds: int
    schedules: int
    left: int
    bounded: bool
    failure: Failure | None


class Explorer:
    """Explores a program in one mode of buffering."""

    def __init__(self, scenario: Scenario, bounds: Bounds) -> None:
        """Nothing is known yet.

        Args:
            scenario: with `exploring`, which has the mode.
            bounds: when to give up.
        """
        self._bounds = bounds
        self._until = time.monotonic() + bounds.seconds
        self._search = Search()
        self._trunk = Trunk(scenario)
        self._bounded = False

    def explore_all(self) -> Explored:
        """Run worlds. Leaves no process."""
        try:
            failed = self._run_until_failure()
            failure = self._shorten(failed) if failed is not None else None
        finally:
            self._trunk.close()
        search = self._search
        left = 0 if failure else search.left
        return Explored(search.worlds, search.schedules, left, self._bounded, failure)

    def _run_until_failure(self) -> Result | None:
        """Until one fails. Returns that."""
        running: dict[socket.socket, Node] = {}
        failed: Result | None = None
        while True:
            while failed is None and len(running) < self._bounds.jobs and self._may_begin(running):
                node = self._search.take_node()
                if node is None:
                    break
                running[self._trunk.begin_world(node.constraint)] = node
            if not running:
                return failed
            for line in select.select(list(running), [], [])[0]:
                node = running.pop(line)
                result = result_of(line)
                self._bounded |= result.bounded
                self._search.report_world(node, Schedule(result.events, result.races))
                if result.kind != WELL and failed is None:
                    failed = result

    def _may_begin(self, running: Mapping[socket.socket, Node]) -> bool:
        begun = self._search.worlds + len(running)
        return begun < self._bounds.worlds and time.monotonic() < self._until

    def _shorten(self, failed: Result) -> Failure:
        """Leave out each choice that it fails without, again and again; find a world beside it."""
        if failed.kind in {DIVERGED, UNFIT}:
            return Failure(failed, [], None, None)
        # a poll that could find nothing has no choice
        real = [one for one in failed.events if one.offered or one.value != (NOTHING,)]
        script = {event.key: event.value for event in real}
        result = failed
        trials = iter(range(TRIALS))
        for part in _parts(len(script)):
            keys = [event.key for event in real if event.key in script]
            for begin in reversed(range(0, len(keys), part)):
                if next(trials, None) is None:
                    break
                without = set(keys[begin : begin + part])
                fewer = {key: value for key, value in script.items() if key not in without}
                found = result_of(self._trunk.begin_world(fewer))
                if (found.kind, found.code) == (failed.kind, failed.code):
                    script, result = fewer, found
        choices = [event for event in result.events if event.key in script]
        turn, instead = self._beside(result, trials)
        return Failure(result, choices, turn, instead, tried=bool(result.races))

    def _beside(
        self, result: Result, trials: Iterator[int]
    ) -> tuple[Event, Race] | tuple[None, None]:
        """A choice of a world that fails, and what ends well in its place."""
        schedule = Schedule(result.events, result.races)
        order = {event.key: place for place, event in enumerate(result.events)}
        for race in sorted(result.races, key=lambda one: -order[one.event.key]):
            if next(trials, None) is None:
                break
            before = result.events[: order[race.event.key]]
            script = {event.key: event.value for event in before}
            script |= {**schedule.past(race.past), race.event.key: race.value}
            if result_of(self._trunk.begin_world(script)).kind == WELL:
                return race.event, race
        return None, None


def _parts(count: int) -> list[int]:
    """Sizes of what is left out at once: halves first, then single choices until none goes."""
    sizes = []
    size = count
    while size > 1:
        sizes.append(size)
        size //= 2
    return [*sizes, 1, 1]
