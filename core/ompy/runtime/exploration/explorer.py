"""Runs the worlds of a program until all its schedules are known, one fails, or a bound is reached.

Then makes a schedule that fails as short as it can be: no choice of it can be left out.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from random import Random
from typing import Any, Final, NamedTuple, Protocol

from ompy.runtime.exploration.boxes import Operation
from ompy.runtime.exploration.events import (
    NOTHING,
    POLL,
    PROBE,
    Diverged,
    Event,
    Impossible,
    Race,
    Value,
)
from ompy.runtime.exploration.first_choice import Beginning, explore_from_first_choice
from ompy.runtime.exploration.histories import Undetermined, Unfit
from ompy.runtime.exploration.priorities import PriorityWorld
from ompy.runtime.exploration.search import KnownRaces, Node, Schedule, Search
from ompy.runtime.exploration.search_file import plain_of, search_of
from ompy.runtime.exploration.told_world import Ending, Point, ToldWorld
from ompy.runtime.exploration.trunk import DIVERGED, IMPOSSIBLE, LEARNT, Result, Trunk, result_of
from ompy.runtime.exploration.windows.parts import Learnt, Parts
from ompy.runtime.simulation.simulated_world import UNFIT, Scenario

WELL: Final = "ended"  # kind of a world in which all went well
TRIALS: Final = 300  # worlds to shorten a schedule; arbitrary: some seconds
PATIENCE: Final = 30.0  # s for that, and again for a world beside it; arbitrary: nobody is told yet


class Bounds(NamedTuple):
    """When to give up.

    Attributes:
        worlds: at most so many are run.
        seconds: no world is begun after so long.
        jobs: whole worlds at a time, where a program has to be explored by such.
        depth: choices beyond so many of each world keep their first value; None for no such bound.
        bug_depth: where a bound has ended the search, worlds of random priorities are run that look
            for failures which take so many choices; 0 for none.
        seed: of these.
    """

    worlds: int
    seconds: float
    jobs: int
    depth: int | None = None
    bug_depth: int = 0
    seed: int = 0


class Failure(NamedTuple):
    """A schedule that fails.

    Attributes:
        result: of its world.
        choices: what has to be chosen for it; all else is as it comes.
        turn: the choice that has been seen to decide; None if none was.
        instead: what was chosen there in a world that ended well, but for that the same.
        tried: there are other schedules, of which none ended well.
        polls: how often in a row a poll finds nothing in it.
        well: the world that ended well; None where `turn` is.
        parts: what is known of windows, as `Parts.plain` has it.
    """

    result: Result
    choices: list[Event]
    turn: Event | None
    instead: Race | None
    tried: bool = False
    polls: int = 0
    well: Result | None = None
    parts: Sequence[Any] = ()


class Checker(Protocol):
    """Takes the records of each world's calls.

    Attributes:
        found: what is wrong in any of them.
    """

    found: list[Any]

    def __call__(self, records: Sequence[Sequence[tuple[Any, ...]]], went_well: bool) -> None:
        """Of a world: what its ranks have recorded, and whether it ended well."""


class RandomWorlds(NamedTuple):
    """Worlds of random priorities that were run.

    Attributes:
        worlds: how many.
        ranks: of each.
        calls: of the longest.
    """

    worlds: int
    ranks: int
    calls: int


class Explored(NamedTuple):
    """What is known of a program in one mode of buffering.

    Attributes:
        worlds: were run.
        schedules: different ones.
        left: worlds that are known and were not run; 0 if all were.
        bounded: a poll might have found nothing more often than was tried.
        failure: the schedule that fails, if one does.
        shallow: there were choices beyond the depth that could have had another value.
        interrupted: Ctrl-C has ended the search.
        plain: the search as `search_file.plain_of` has it, unless a schedule fails.
        random: of the worlds of random priorities; None if there were none.
        found: what the checker has found; empty without one.
        heeded: a rank looks at its own part of a window in between (`Parts.heeded`).
        loaded: a rank may do so by loads that nobody sees (`Parts.loaded`).
        untried: what matters to the program and is not tried (`Parts.untried`).
        seen: of each schedule its digest; equal choices have equal ones in both modes.
    """

    worlds: int
    schedules: int
    left: int
    bounded: bool
    failure: Failure | None
    shallow: bool = False
    interrupted: bool = False
    plain: Mapping[str, Any] | None = None
    random: RandomWorlds | None = None
    found: Sequence[Any] = ()
    heeded: bool = False
    loaded: bool = False
    untried: frozenset[str] = frozenset()
    seen: frozenset[bytes] = frozenset()


class Explorer:
    """Explores a program in one mode of buffering."""

    def __init__(
        self,
        scenario: Scenario,
        bounds: Bounds,
        plain: Mapping[str, Any] | None = None,
        checker: Checker | None = None,
    ) -> None:
        """Know what an earlier search has found, or nothing.

        Args:
            scenario: with `exploring`, which has the mode.
            bounds: when to give up.
            plain: the earlier search, as `search_file.plain_of` has it.
            checker: looks at what each world's ranks have called; it is not asked of whole worlds.
        """
        self._bounds = bounds
        self._until = time.monotonic() + bounds.seconds
        self._search = search_of(plain) if plain is not None else Search(bounds.depth)
        self._plain = plain
        self._checker = checker
        self._bounded = bool(plain and plain["bounded"])
        self._before = self._search.worlds  # of the search that this one goes on with
        self._interrupted = False
        self._random: RandomWorlds | None = None
        self._beginning: Beginning | None = None
        assert scenario.exploring is not None, "it is a world that is explored"
        self._polls = scenario.exploring.polls
        self._parts = Parts(plain.get("parts", ()) if plain is not None else ())
        exploring = scenario.exploring._replace(parts=self._parts)
        self._scenario = scenario._replace(exploring=exploring)
        self._trunk: Trunk | None = None  # of whole worlds; made when one is needed

    def explore_all(self) -> Explored:
        """Run worlds. Leaves no process."""
        failures: list[Failure] | None = None
        try:
            while failures is None:
                failures = self._explore_as_learnt()
        except KeyboardInterrupt:
            self._interrupted = True
        finally:
            self._close_trunk()
        failure = failures[0]._replace(parts=self._parts.plain()) if failures else None
        search = self._search
        left = 0 if failure else search.left
        return Explored(
            search.worlds,
            search.schedules,
            left,
            self._bounded,
            failure,
            search.shallow,
            self._interrupted,
            self._plain_search() if failure is None else None,
            self._random,
            self._checker.found if self._checker is not None else (),
            self._parts.heeded,
            self._parts.loaded,
            frozenset(self._parts.untried),
            frozenset(search.seen),
        )

    def _plain_search(self) -> dict[str, Any]:
        return {**plain_of(self._search, bounded=self._bounded), "parts": self._parts.plain()}

    def _close_trunk(self) -> None:
        if self._trunk is not None:
            self._trunk.close()
        self._trunk = None

    def _explore_as_learnt(self) -> list[Failure] | None:
        """With what is known of windows. None where that is more now, so that all begins again."""
        try:
            try:
                return self._explore_by_histories() if self._search.left else []
            except Learnt:
                raise
            except (Undetermined, Unfit, Diverged) as problem:
                if isinstance(problem, Diverged):
                    self._heed_parts()
                return self._explore_whole_worlds()
        except Learnt:
            self._plain, self._before = None, 0
            self._begin_again()
            return None

    def _learn(self, result: Result) -> None:
        """What a whole world has shown of windows.

        Raises:
            Learnt: other operations need an order.
        """
        self._parts.absorb(result.parts)
        if result.kind == LEARNT:
            raise Learnt(result.parts)

    def _heed_parts(self) -> None:
        """A choice could not be made: ranks may look at their own parts of windows.

        Raises:
            Learnt: they were not taken to.
        """
        if self._parts.pieces and not self._parts.heeded:
            self._parts.heeded = True
            raise Learnt(self._parts.plain())

    def _begin_again(self) -> None:
        """Forget what this search has run; worlds of random priorities had polls of their own."""
        self._close_trunk()
        assert self._scenario.exploring is not None, "it is a world that is explored"
        self._polls = self._scenario.exploring.polls
        self._random = None
        self._beginning = None
        self._search = search_of(self._plain) if self._plain else Search(self._bounds.depth)
        self._bounded = bool(self._plain and self._plain["bounded"])

    def _explore_whole_worlds(self) -> list[Failure]:
        self._begin_again()
        failed = self._run_until_failure()
        return [self._failure(failed)] if failed is not None else []

    def _explore_by_histories(self) -> list[Failure]:
        """What ranks do is asked of them once. At most one failure.

        Raises:
            Undetermined, Unfit, Diverged: whole worlds have to be run.
        """
        failures: list[Failure] = []

        def explore(beginning: Beginning) -> None:
            self._beginning = beginning
            failed = self._search_by_histories()
            if failed is None and self._search.left and not self._interrupted:
                failed = self._try_priorities(beginning)
            if failed is not None:
                failures.append(self._failure(failed))

        whole = explore_from_first_choice(self._scenario, explore)
        self._beginning = None
        if whole is not None:
            self._learn(whole)
        if whole is not None and whole.kind == "interrupted":
            self._interrupted = True
        elif whole is not None:
            node = self._search.take_node()
            assert node is not None, "nothing was run yet"
            if self._checker is not None:
                self._checker(list(whole.recorded), whole.kind == WELL)
            self._search.report_world(node, Schedule(whole.events, whole.races))
            self._bounded |= whole.bounded
            if whole.kind != WELL:
                failures.append(Failure(whole, [], None, None))
        return failures

    def _search_by_histories(self) -> Result | None:
        """Until a world fails. Returns that, as a whole world."""
        search = self._search
        while self._may_begin({}):
            node = search.take_node()
            if node is None:
                return None
            try:
                failed = self._run_node(node)
            except Impossible:
                search.drop_node(node)
                continue
            except KeyboardInterrupt:
                search.give_back(node)
                self._interrupted = True
                return None
            if failed is not None:
                return failed
        return None

    def _run_node(self, node: Node) -> Result | None:
        """Conduct its world. Returns that as a whole world if it fails; it is reported by then."""
        assert self._beginning is not None, "it is explored by histories"
        world = self._begin_world(node.constraint, node.begin)
        ending = world.run_to_end(KnownRaces(node))
        failed = self._confirm(ending) if ending.kind != WELL else None
        if self._checker is not None:
            self._checker(world.records(self._beginning.recorded), ending.kind == WELL)
        self._bounded |= ending.bounded
        self._search.report_world(node, Schedule(ending.events, ending.races, ending.saved))
        return failed

    def _try_priorities(self, beginning: Beginning) -> Result | None:
        """Run worlds of random priorities until one fails. Returns that, as a whole world."""
        depth, until = self._bounds.bug_depth, time.monotonic() + self._bounds.seconds
        ranks = len(beginning.histories)
        calls = worlds = 0
        limit = self._scenario.limit
        while depth and worlds < self._bounds.worlds and time.monotonic() < until:
            random = Random(f"{self._bounds.seed}/priorities/{worlds}")  # noqa: S311
            changes = [random.randrange(max(calls, 1)) for _ in range(depth - 1)]
            world = PriorityWorld(
                beginning.point,
                beginning.histories,
                limit=limit,
                random=random,
                changes=changes,
                parts=self._parts,
            )
            try:
                ending = world.run_to_end(lambda _key, _value: True)
            except KeyboardInterrupt:
                self._interrupted = True
                break
            worlds, calls = worlds + 1, max(calls, world.calls)
            self._random = RandomWorlds(worlds, ranks, calls)
            if ending.kind != WELL:
                self._polls = most_nothings(ending.events)
                return self._confirm(ending)
        return None

    def _begin_world(
        self, script: Mapping[Operation, Value], begin: Point | None, parts: Parts | None = None
    ) -> ToldWorld:
        assert self._beginning is not None, "it is explored by histories"
        point, histories, _ = self._beginning
        limit, polls = self._scenario.limit, self._polls
        return ToldWorld(
            begin or point, script, histories, limit=limit, polls=polls, parts=parts or self._parts
        )

    def _confirm(self, ending: Ending) -> Result:
        """The same schedule in a whole world.

        Raises:
            Undetermined: it ends otherwise there.
        """
        script = {event.key: event.value for event in ending.events}
        found = self._run_whole(script)
        self._learn(found)
        if (found.kind, found.code) != (ending.kind, ending.code):
            raise Undetermined
        return found

    def _run_whole(self, script: Mapping[Operation, Value]) -> Result:
        return result_of(self._make_trunk().begin_world(script))

    def _run_trial(self, script: Mapping[Operation, Value]) -> Result:
        """How a world ends, as quickly as that can be said."""
        if self._beginning is None:
            return self._run_whole(script)
        try:
            parts = Parts(self._parts.plain())  # where the script leads is of no other use
            world = self._begin_world(script, None, parts)
            ending = world.run_to_end(lambda _key, _value: True)
        except (Diverged, Impossible) as problem:
            return Result(DIVERGED, 1, str(problem), [], [])
        return Result(ending.kind, ending.code, ending.text, ending.events, [], ending.bounded)

    def _make_trunk(self) -> Trunk:
        if self._trunk is None:
            exploring = self._scenario.exploring
            assert exploring is not None, "it is a world that is explored"
            exploring = exploring._replace(polls=self._polls)
            self._trunk = Trunk(self._scenario._replace(exploring=exploring))
        return self._trunk

    def _run_until_failure(self) -> Result | None:
        """Run whole worlds until one fails. Returns that."""
        trunk = self._make_trunk()
        running: dict[socket.socket, Node] = {}
        failed: Result | None = None
        while True:
            while failed is None and len(running) < self._bounds.jobs and self._may_begin(running):
                node = self._search.take_node()
                if node is None:
                    break
                running[trunk.begin_world(node.constraint)] = node
            if not running:
                return failed
            try:
                ready = select.select(list(running), [], [])[0]
            except KeyboardInterrupt:
                for node in running.values():
                    self._search.give_back(node)
                self._interrupted = True
                return None
            for line in ready:
                node = running.pop(line)
                result = self._take_whole(node, result_of(line))
                failed = failed or result

    def _take_whole(self, node: Node, result: Result) -> Result | None:
        """Learn what a whole world has shown. Returns it if it fails."""
        self._learn(result)
        if result.kind == IMPOSSIBLE:
            self._search.drop_node(node)
            return None
        if result.kind == DIVERGED:
            self._heed_parts()
        self._bounded |= result.bounded
        self._search.report_world(node, Schedule(result.events, result.races))
        return result if result.kind != WELL else None

    def _may_begin(self, running: Mapping[socket.socket, Node]) -> bool:
        begun = self._search.worlds - self._before + len(running)
        return begun < self._bounds.worlds and time.monotonic() < self._until

    def _failure(self, failed: Result) -> Failure:
        """A failure as short as it can be, or as it is where nobody waits for that."""
        try:
            return self._shorten(failed)
        except KeyboardInterrupt:
            return Failure(failed, list(failed.events), None, None, polls=self._polls)

    def _shorten(self, failed: Result) -> Failure:
        """Leave out each choice that it fails without, again and again; find a world beside it."""
        if failed.kind in {DIVERGED, UNFIT}:
            return Failure(failed, [], None, None)
        # a poll that could find nothing has no choice
        real = [one for one in failed.events if one.offered or one.value != (NOTHING,)]
        script = {event.key: event.value for event in real}
        result = failed
        every = iter(range(TRIALS))
        trials = _in_time(every)
        for part in _parts(len(script)):
            keys = [event.key for event in real if event.key in script]
            for begin in reversed(range(0, len(keys), part)):
                if next(trials, None) is None:
                    break
                without = set(keys[begin : begin + part])
                fewer = {key: value for key, value in script.items() if key not in without}
                found = self._run_trial(fewer)
                if (found.kind, found.code) == (failed.kind, failed.code):
                    script = fewer
        result = self._run_whole(script)  # which says all that there is to say
        if (result.kind, result.code) != (failed.kind, failed.code):
            script, result = {event.key: event.value for event in real}, failed
        choices = [event for event in result.events if event.key in script]
        turn, instead, well = self._beside(result, _in_time(every))
        return Failure(result, choices, turn, instead, bool(result.races), self._polls, well)

    def _beside(
        self, result: Result, trials: Iterator[int]
    ) -> tuple[Event, Race, Result] | tuple[None, None, None]:
        """A choice of a world that fails, and what ends well in its place."""
        schedule = Schedule(result.events, result.races)
        order = {event.key: place for place, event in enumerate(result.events)}
        for race in sorted(result.races, key=lambda one: -order[one.event.key]):
            if next(trials, None) is None:
                break
            before = result.events[: order[race.event.key]]
            script = {event.key: event.value for event in before}
            script |= {**schedule.past(race.past), race.event.key: race.value}
            if self._run_trial(script).kind != WELL:
                continue
            well = self._run_whole(script)
            if well.kind == WELL:
                return race.event, race, well
        return None, None, None


def _in_time(trials: Iterator[int]) -> Iterator[int]:
    """Some trials, until somebody would have to wait for too long."""
    until = time.monotonic() + PATIENCE
    return takewhile(lambda _: time.monotonic() < until, trials)


def most_nothings(events: Iterable[Event]) -> int:
    """How often in a row a rank's polls find nothing, at most."""
    now: dict[int, int] = {}
    most = 0
    for event in events:
        if event.kind in {POLL, PROBE}:
            rank = event.key[0]
            now[rank] = now.get(rank, 0) + 1 if event.value == (NOTHING,) else 0
            most = max(most, now[rank])
    return most


def _parts(count: int) -> list[int]:
    """Sizes of what is left out at once: halves first, then single choices until none goes."""
    sizes = []
    size = count
    while size > 1:
        sizes.append(size)
        size //= 2
    return [*sizes, 1, 1]
