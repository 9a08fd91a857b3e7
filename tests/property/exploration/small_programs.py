"""Programs of a few lines for the exchange, and all their schedules, found by trying everything.

A rank is a generator that yields what it does: `("send", to, tag)`, `("ssend", to, tag)`,
`("post", source, tag)`, `("wait", operation)`, `("any", operations)`, `("poll",)`,
`("probe", source, tag)`, `("iprobe", source, tag)`. It is sent what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from ompy.runtime.exploration.events import DONE, NOTHING
from ompy.runtime.exploration.exchange import Exchange
from ompy.runtime.exploration.races import find_races
from ompy.runtime.exploration.search import KnownRaces, Schedule, Search

Rank = Callable[[], Generator[tuple[Any, ...], Any, None]]
WORLD = 0


def run_world(ranks: Sequence[Rank], exchange: Exchange) -> str:
    """Run a program until all its ranks have ended, or none can go on."""
    states = [_Runner(number, rank(), exchange) for number, rank in enumerate(ranks)]
    for state in states:
        state.go_on(None)
    while True:
        ready = exchange.match_certain()
        for rank in ready:
            states[rank].take_news()
        if ready:
            continue
        if not exchange.decide():
            return "ended" if all(state.ended for state in states) else "deadlock"
        for state in states:
            if not state.ended and not exchange.waits(state.rank):
                state.take_news()


class _Runner:
    """Lets one rank run until it waits."""

    def __init__(self, rank: int, program: Any, exchange: Exchange) -> None:
        self.rank = rank
        self.ended = False
        self._program = program
        self._exchange = exchange
        self._number = 0
        self._complete: dict[int, Any] = {}
        self._asked: tuple[Any, ...] = ()

    def take_news(self) -> None:
        """It has been told something."""
        answer: Any = None
        for kind, number, *rest in self._exchange.news(self.rank):
            if kind == DONE:
                self._complete[number] = rest[0]
            answer = (kind, number, *rest)
        self.go_on(self._answer(answer))

    def _answer(self, news: Any) -> Any:
        match self._asked[0]:
            case "wait":
                return self._complete[self._asked[1]]
            case "any":
                return next(one for one in self._asked[1] if one in self._complete)
            case "poll":
                return tuple(sorted(self._complete.items()))
            case _:
                return None if news[0] == NOTHING else news[2]

    def go_on(self, answer: Any) -> None:
        """Run it until it waits."""
        while True:
            try:
                asked = self._program.send(answer)
            except StopIteration:
                self.ended = True
                self._exchange.end_wait(self.rank)
                return
            answer = self._do(asked)
            if self._exchange.waits(self.rank):
                self._asked = asked
                return

    def _do(self, asked: tuple[Any, ...]) -> Any:
        exchange, rank = self._exchange, self.rank
        what, *words = asked
        if what == "wait" and words[0] in self._complete:
            return self._complete[words[0]]
        if what == "any":
            for one in words[0]:
                if one in self._complete:
                    return one
        self._number += 1
        operation = (rank, self._number)
        match what:
            case "send" | "ssend":
                to, tag = words
                done = exchange.send_message(
                    operation, (WORLD, to), rank, tag, b"", synchronous=what == "ssend"
                )
                if done:
                    self._complete[self._number] = rank
            case "post":
                exchange.post_receive(operation, WORLD, *words)
            case "wait":
                exchange.await_operations(operation, [words[0]], inner=False)
            case "any":
                exchange.await_operations(operation, list(words[0]), inner=False)
            case "poll":
                exchange.poll_operations(operation)
            case "probe" | "iprobe":
                exchange.probe_message(operation, WORLD, *words, takes=False, waits=what == "probe")
        return self._number


Outcomes = dict[frozenset[tuple[Any, Any]], str]  # by what was chosen, how the program ended


def explore(
    ranks: Sequence[Rank], *, polls: int = 1, buffers: bool = True
) -> tuple[Search, Outcomes]:
    """Search all schedules of a program."""
    search, outcomes = Search(), {}
    while (node := search.take_node()) is not None:
        exchange = Exchange(len(ranks), node.constraint, polls=polls, buffers=buffers)
        end = run_world(ranks, exchange)
        values = {event.key: event.value for event in exchange.events}
        assert all(values.get(key) == value for key, value in node.constraint.items())
        races = find_races(exchange, KnownRaces(node))
        search.report_world(node, Schedule(list(exchange.events), races))
        outcomes[frozenset(values.items())] = end
    return search, outcomes
