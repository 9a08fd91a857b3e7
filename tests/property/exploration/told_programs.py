"""The same small programs for told worlds: a rank is run anew for each thing it is told."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from ompy.runtime.exploration.events import DONE, NOTHING
from ompy.runtime.exploration.exchange import Exchange
from ompy.runtime.exploration.histories import Moment
from ompy.runtime.exploration.search import KnownRaces, Schedule, Search
from ompy.runtime.exploration.told_world import Actor, Point, ToldWorld

from tests.property.exploration.small_programs import WORLD, Outcomes, Rank

LIMIT = 1_000_000_000  # ns of virtual time


class ToldRank:
    """Stands in for `Histories`: what a rank does is found by running it from its beginning."""

    def __init__(self, rank: int, program: Rank, *, buffers: bool) -> None:
        self.first = Moment([], b"", None)
        self._rank = rank
        self._program = program
        self._buffers = buffers
        self._told: dict[Moment, list[list[Any]]] = {self.first: []}

    def go_on(self, moment: Moment, answer: tuple[Any, ...]) -> Moment:
        """What the rank does when it is told that."""
        key = pickle.dumps(answer)
        if key not in moment.after:
            told = [*self._told[moment], answer[3]]
            made = moment.after[key] = Moment(self._run(told), key, moment)
            self._told[made] = told
        return moment.after[key]

    def _run(self, told: Sequence[Sequence[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
        """The last batch of calls, of a rank that was told this."""
        program, complete, number = self._program(), set(), 0
        batch: list[tuple[Any, ...]] = []
        answers = iter(told[1:])  # the first begins it
        reply: Any = None
        while True:
            try:
                what, *words = program.send(reply)
            except StopIteration:
                return [*batch, ("end", 0, {})]
            ready = [one for one in words[0] if one in complete] if what == "any" else []
            if ready or (what == "wait" and words[0] in complete):
                reply = ready[0] if ready else 0
                continue
            number += 1
            call = self._call(number, what, words)
            batch.append(call)
            reply = number
            if what in {"send", "ssend", "post"}:
                continue
            found: Any = None
            waits = True
            while waits:
                news = next(answers, None)
                if news is None:
                    return batch
                batch = []
                for _, kind, of, *rest in (one for one in news if one[0] == "direct"):
                    if kind == DONE:
                        complete.add(of)
                        found = of
                    else:
                        found = None if kind == NOTHING else rest[0]
                waits = what == "wait" and words[0] not in complete  # others' ends wake it, too
                if waits:
                    batch.append(call)
            reply = tuple((one, 0) for one in sorted(complete)) if what == "poll" else found

    def _call(self, number: int, what: str, words: Sequence[Any]) -> tuple[Any, ...]:
        match what:
            case "send" | "ssend":
                to, tag = words
                synchronous = what == "ssend"
                return (
                    "direct_send",
                    number,
                    (WORLD, to),
                    self._rank,
                    tag,
                    b"",
                    synchronous,
                    False,
                    False,
                    "",
                )
            case "post":
                return ("direct_receive", number, WORLD, *words, False, "")
            case "wait":
                return ("direct_wait", 0, [words[0]], False, "")
            case "any":
                return ("direct_wait", number, list(words[0]), False, "")
            case "poll":
                return ("direct_poll", number, "", False)
        return ("direct_look", number, WORLD, *words, False, what == "probe", "")


def beginning(ranks: Sequence[Rank], *, buffers: bool = True) -> tuple[Point, list[Any]]:
    """Before anything has happened, and what ranks do then."""
    told = [ToldRank(number, rank, buffers=buffers) for number, rank in enumerate(ranks)]
    exchange = Exchange(len(ranks), buffers=buffers)
    actors = []
    for number, each in enumerate(told):
        actor = Actor(number, each.first)
        actor.state = 3  # LISTENS: it has its turn when it is woken
        actors.append(actor)
    timers = tuple((0, "wake", number) for number in range(len(ranks)))
    return Point(pickle.dumps(exchange), (), tuple(actors), timers, 0, 0), told


def conduct(
    ranks: Sequence[Rank],
    search: Search,
    *,
    polls: int = 1,
    buffers: bool = True,
    most: int | None = None,
) -> Outcomes:
    """Go on with a search, for so many worlds at most."""
    point, told = beginning(ranks, buffers=buffers)
    outcomes: Outcomes = {}
    begun = search.worlds
    while most is None or search.worlds - begun < most:
        node = search.take_node()
        if node is None:
            break
        at = node.begin or point
        world = ToldWorld(at, node.constraint, told, limit=LIMIT, polls=polls)
        ending = world.run_to_end(KnownRaces(node))
        values = {event.key: event.value for event in ending.events}
        assert all(values.get(key) == value for key, value in node.constraint.items())
        search.report_world(node, Schedule(ending.events, ending.races, ending.saved))
        outcomes[frozenset(values.items())] = ending.kind
    return outcomes
