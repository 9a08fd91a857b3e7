"""A world that is explored, conducted without processes: what ranks do comes from `Histories`.

It does what `simulated_world.py`, its stubs and its fence do from the first choice on, for the few
calls that ranks make there. All of its state is plain data, so it can be saved at any choice, and
gone on with from there as often as is wanted: a world costs what comes after the last choice that
it has in common with one that was run.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ompy.engine.virtual_engine import STEPS_MAX
from ompy.runtime.diagnosis.autopsy import DEADLOCK
from ompy.runtime.diagnosis.call_account import complaint
from ompy.runtime.diagnosis.verdict import IMPROPER
from ompy.runtime.exploration.boxes import Operation
from ompy.runtime.exploration.events import Event, Race, Value
from ompy.runtime.exploration.exchange import Exchange
from ompy.runtime.exploration.fence import IDLE_MOST, UNNOTICED
from ompy.runtime.exploration.histories import Gone, Histories, Moment, Undetermined
from ompy.runtime.exploration.races import Known, find_races
from ompy.runtime.exploration.windows.parts import Parts
from ompy.runtime.simulation.simulated_world import BEYOND, UNFIT
from ompy.runtime.simulation.virtual_job import NEWS

BETWEEN: Final = 3  # measured: choices between two points that are saved, at least
# and at most, as long as a point takes no more than ten times as long as these; measured, too
FARTHEST: Final = 10
BYTES: Final = 1_200  # measured: of a point for each choice until the next: both cost as much

# values of a rank's state
RUNS: Final = 0
MATCHES: Final = 1  # waits for the exchange
SLEEPS: Final = 2
LISTENS: Final = 3  # waits for any news
ENDED: Final = 4


class Actor:
    """One rank of the world.

    Attributes:
        rank: which.
        moment: where it is in its histories.
        state: RUNS, MATCHES, SLEEPS, LISTENS or ENDED.
        number: of the wait, poll or probe; 0 of a wait that has no choice.
        until: ns, when it goes on by itself.
        news: what it is told with the next answer.
        calls: the account of its collective calls, once it has finalized.
    """

    __slots__ = ("calls", "moment", "news", "number", "rank", "state", "until")

    def __init__(self, rank: int, moment: Moment) -> None:
        self.rank = rank
        self.moment = moment
        self.state = RUNS
        self.number = 0
        self.until = 0
        self.news: list[tuple[Any, ...]] = []
        self.calls: dict[str, Any] = {}

    def copied(self) -> Actor:
        """Another one that is where this is."""
        made = Actor(self.rank, self.moment)
        made.state, made.number, made.until = self.state, self.number, self.until
        made.news, made.calls = list(self.news), self.calls
        return made


class Point(NamedTuple):
    """A world at a choice; plain data, which nobody changes.

    Attributes:
        exchange: pickled, but for its events.
        events: the choices that were made.
        actors: the ranks.
        timers: what happens when, in order: time, what, rank, and whom a leaving rank has told.
        time: ns of the world's clock.
        steps: turns that ranks have had.
    """

    exchange: bytes
    events: tuple[Event, ...]
    actors: tuple[Actor, ...]
    timers: tuple[tuple[Any, ...], ...]
    time: int
    steps: int


class Ending(NamedTuple):
    """How a world ended.

    Attributes:
        kind, code, text: as of an `Outcome`.
        events: the choices that were made, in their order.
        races: what they could have been instead, but for what is known.
        bounded: a poll might have found nothing more often than the bound allows.
        saved: points of it, by how many choices were made before.
    """

    kind: str
    code: int
    text: str
    events: list[Event]
    races: list[Race]
    bounded: bool
    saved: list[tuple[int, Point]]


class Over(Exception):
    """The world has ended badly: kind, code, text."""


class ToldWorld:
    """One world, from a point on."""

    def __init__(
        self,
        point: Point,
        script: Mapping[Operation, Value],
        histories: Sequence[Histories],
        *,
        limit: int,
        polls: int,
        parts: Parts | None = None,
    ) -> None:
        """Go on from a point.

        Args:
            point: where.
            script: what is chosen where.
            histories: of each rank.
            limit: ns of virtual time after which the world is ended.
            polls: how often in a row a poll finds nothing although it could.
            parts: what is known of windows; None if nothing is.
        """
        self._exchange: Exchange = pickle.loads(point.exchange)  # noqa: S301 - our own
        self._exchange.events = list(point.events)
        self._exchange.script = dict(script)
        self._exchange.polls = polls
        self._exchange.parts = parts if parts is not None else Parts()
        self._actors = [actor.copied() for actor in point.actors]
        self._timers = list(point.timers)
        self._time = point.time
        self._steps = point.steps
        self._histories = histories
        self._limit = limit
        self._ready: list[Actor] = []
        self._saved: list[tuple[int, Point]] = []
        self._next_save = len(point.events) + _until_next(point)

    def run_to_end(self, known: Known | None = None) -> Ending:
        """To the end.

        Args:
            known: whether a value of a choice need not be told of as a race.

        Raises:
            Undetermined, Unfit: it cannot be explored so.
            Diverged: what the script chooses cannot be.
            Impossible: it cannot be together.
        """
        kind, code, text = self._run()
        exchange = self._exchange
        races = find_races(exchange, known)
        return Ending(kind, code, text, exchange.events, races, exchange.bounded, self._saved)

    def _run(self) -> tuple[str, int, str]:
        try:
            while any(actor.state != ENDED for actor in self._actors):
                self._step()
        except Over as over:
            kind, code, text = over.args
            return kind, code, text
        except TimeoutError:
            return "stuck", BEYOND, "a rank does not come back"
        accounts = {actor.rank: actor.calls for actor in self._actors if actor.calls}
        found = complaint(accounts) if len(accounts) == len(self._actors) else ""
        found = found or self._exchange.complaint()
        return ("failed", IMPROPER, found) if found else ("ended", 0, "")

    def records(self, before: Sequence[Sequence[tuple[Any, ...]]]) -> list[list[tuple[Any, ...]]]:
        """The record of the calls of each rank, where the program is checked.

        Args:
            before: what they had recorded at the first choice.
        """
        return [
            [*first, *actor.moment.recorded()]
            for first, actor in zip(before, self._actors, strict=True)
        ]

    # who goes on: as the fence and the scheduler have it

    def _step(self) -> None:
        if self._ready:
            self._give_turn(self._ready.pop(0))
        elif not self._pass_turn():
            self._pass_time()

    def _pass_turn(self) -> bool:
        exchange = self._exchange
        for rank in exchange.match_certain():
            self._wake(self._actors[rank])
        self._wake_free()
        if self._ready:
            return True
        if any(each.state != ENDED and not exchange.waits(each.rank) for each in self._actors):
            return False
        if exchange.idle_polls() > IDLE_MOST:
            exchange.see_it_goes_on()
            raise Over("limit", BEYOND, "polls without end")
        if len(exchange.events) >= self._next_save:
            self._save_point(len(exchange.events))
        if not exchange.decide():
            return False
        for rank in exchange.match_certain():
            self._wake(self._actors[rank])
        self._wake_free()
        return True

    def _wake_free(self) -> None:
        for actor in self._actors:
            if actor.state == MATCHES and not self._exchange.waits(actor.rank):
                self._wake(actor)

    def _wake(self, actor: Actor) -> None:
        if actor.state not in {RUNS, ENDED} and actor not in self._ready:
            self._ready.append(actor)

    def _pass_time(self) -> None:
        if not self._timers:
            self._exchange.see_it_can_be()
            if self._exchange.deaths:
                raise Over(UNFIT, 1, UNNOTICED)
            waits = sum(actor.state != ENDED for actor in self._actors)
            raise Over("deadlock", DEADLOCK, f"nothing can happen any more; {waits} wait")
        self._time = max(self._time, self._timers[0][0])
        if self._time > self._limit:
            raise Over("limit", BEYOND, "virtual time is over")
        while self._timers and self._timers[0][0] <= self._time:
            _, what, rank, *told = self._timers.pop(0)
            if what == "wake":
                self._wake(self._actors[rank])
                continue
            for actor in self._actors:
                if actor.rank != rank and actor.state != ENDED:
                    silent = what == "left" and actor.rank not in told[0]
                    says = silent if what == "left" else "has ended"
                    actor.news.append((what, rank, says))
                    self._wake(actor)

    def _after(self, delay: int, *what: Any) -> None:
        self._timers.append((self._time + delay, *what))
        self._timers.sort(key=lambda one: one[0])  # stable: ties in the order of adding

    def _save_point(self, at: int) -> None:
        point = self._point()
        self._saved.append((at, point))
        self._next_save = at + _until_next(point)

    def _point(self) -> Point:
        exchange = self._exchange
        return Point(
            pickle.dumps(exchange, pickle.HIGHEST_PROTOCOL),
            tuple(exchange.events),
            tuple(actor.copied() for actor in self._actors),
            tuple(self._timers),
            self._time,
            self._steps,
        )

    # what a rank does: as its stub has it

    def _give_turn(self, actor: Actor) -> None:
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise Over("limit", BEYOND, "turns without end")
        exchange = self._exchange
        if actor.state == SLEEPS and self._time < actor.until:
            return
        if actor.state == MATCHES:
            if actor.number and exchange.waits(actor.rank):
                return
            self._end_wait(actor)
        actor.state = RUNS
        value: Any = None
        while actor.state == RUNS:
            self._ask(actor, value)
            for call in actor.moment.batch:
                value = self._do(actor, call)

    def _ask(self, actor: Actor, value: Any) -> None:
        """Tell a rank what its last call has come to; its moment is the next one then."""
        news, actor.news = actor.news, []
        answer: tuple[Any, ...] = (self._time, "ok", value, news, {})
        try:
            actor.moment = self._histories[actor.rank].go_on(actor.moment, answer)
        except Gone:
            text = f"rank {actor.rank}: its process has gone"
            raise Over("failed", 1, text) from None

    def _do(self, actor: Actor, call: tuple[Any, ...]) -> Any:
        """Do what a rank asks for. Returns what it is answered."""
        name, *words = call
        do = getattr(self, f"do_{name}", None)
        if do is None:
            raise Undetermined(name)
        return do(actor, *words)

    def _end_wait(self, actor: Actor) -> None:
        self._exchange.end_wait(actor.rank)
        actor.news += [("direct", *told) for told in self._exchange.news(actor.rank)]

    def do_nothing(self, actor: Actor) -> None:
        """Take a batch in."""

    def do_checked(self, actor: Actor, events: list[tuple[Any, ...]]) -> None:
        """Entries of the record of calls: `records` reads them of the moments."""

    def do_direct_send(
        self,
        actor: Actor,
        number: int,
        to: tuple[int, int],
        source: int,
        tag: int,
        data: bytes,
        synchronous: bool,
        served: bool,
        buffered: bool,
        site: str,
        ready: bool = False,
    ) -> None:
        """A message."""
        self._exchange.send_message(
            (actor.rank, number),
            to,
            source,
            tag,
            data,
            synchronous=synchronous,
            served=served,
            buffered=buffered,
            ready=ready,
            site=site,
        )

    def do_direct_receive(
        self,
        actor: Actor,
        number: int,
        context: int,
        source: int,
        tag: int,
        served: bool,
        site: str,
    ) -> None:
        """A receive."""
        operation = (actor.rank, number)
        self._exchange.post_receive(operation, context, source, tag, site, served=served)

    def do_direct_whole(self, actor: Actor, *said: Any) -> None:
        """Several messages become one operation, or it is complete."""
        self._exchange.note_whole(actor.rank, *said)

    def do_direct_parts(self, actor: Actor, *said: Any) -> None:
        """Messages belong to an operation."""
        self._exchange.add_parts(actor.rank, *said)

    def do_direct_access(self, actor: Actor, *said: Any) -> None:
        """A rank accesses something that others may, too."""
        self._exchange.note_access(actor.rank, *said)

    def do_direct_until(self, actor: Actor, *said: Any) -> None:
        """That goes on, or has ended."""
        self._exchange.accesses.extend_access(actor.rank, *said)

    def do_direct_never_loaded(self, actor: Actor, context: int) -> None:
        """No rank loads from its own part of a window."""
        self._exchange.note_never_loaded(context)

    def do_direct_meet(
        self, actor: Actor, number: int, call: tuple[int, ...], members: int
    ) -> None:
        """A rank has come to a collective call."""
        self._exchange.enter_call((actor.rank, number), call, members)

    def do_direct_turn(
        self, actor: Actor, number: int, name: str, changes: bool, site: str
    ) -> None:
        """A rank wants its turn at a name."""
        self._exchange.ask_turn((actor.rank, number), name, changes=changes, site=site)

    def do_direct_untried(self, actor: Actor, what: str) -> None:
        """Something matters of which not all orders are tried."""
        self._exchange.note_untried(what)

    def do_direct_cancel(self, actor: Actor, number: int, receive: int, site: str) -> bool | None:
        """Cancel a receive. False: it is matched already; else news say what became of it."""
        if not self._exchange.cancel_receive((actor.rank, number), receive, site):
            return False
        actor.state, actor.number = MATCHES, number
        return None

    def do_direct_forget(self, actor: Actor, context: int) -> None:
        """A communicator is freed."""
        self._exchange.forget(context, actor.rank)

    def do_direct_wait(
        self, actor: Actor, number: int, wanted: list[int], others: bool, site: str
    ) -> None:
        """Wait for operations, for others that it does not name, or for news."""
        operation = (actor.rank, number)
        self._exchange.await_operations(operation, wanted, inner=others, site=site)
        if actor.news and not wanted and not number:
            self._end_wait(actor)
            return
        actor.state, actor.number = MATCHES, number

    def do_direct_poll(
        self, actor: Actor, number: int, site: str, further: bool, only: int = 0
    ) -> None:
        """Look what is complete."""
        self._exchange.poll_operations((actor.rank, number), site, further=further, only=only)
        actor.state, actor.number = MATCHES, number

    def do_direct_look(
        self,
        actor: Actor,
        number: int,
        context: int,
        source: int,
        tag: int,
        takes: bool,
        waits: bool,
        site: str,
    ) -> None:
        """Probe."""
        self._exchange.probe_message(
            (actor.rank, number), context, source, tag, takes=takes, waits=waits, site=site
        )
        actor.state, actor.number = MATCHES, number

    def do_after(self, actor: Actor, delay: int) -> None:
        """Wake the rank later."""
        self._after(delay, "wake", actor.rank)

    def do_spend(self, actor: Actor, duration: int) -> None:
        """Let time pass."""
        self._after(duration, "wake", actor.rank)
        if duration > 0:
            actor.state, actor.until = SLEEPS, self._time + duration

    def do_pause(self, actor: Actor) -> None:
        """Wait for any news."""
        if not actor.news:
            actor.state = LISTENS

    def do_leaving(self, actor: Actor, told: list[int]) -> None:
        """The rank has begun to finalize."""
        self._after(NEWS, "left", actor.rank, frozenset(told))

    def do_finalized(self, actor: Actor, calls: dict[str, Any]) -> None:
        """The rank has finalized: an account of its collective calls."""
        actor.calls = calls

    def do_abort(self, actor: Actor, code: int, reason: str) -> None:
        """End the world."""
        raise Over("aborted", code % 256 or 1, f"rank {actor.rank}: {reason}")

    def do_end(self, actor: Actor, code: int, report: dict[str, Any]) -> None:
        """The program has come to its end."""
        actor.state = ENDED
        if code:
            text = f"rank {actor.rank}: it ended with exit code {code}, {report['why']}"
            raise Over("failed", code, text)
        self._after(NEWS, "ended", actor.rank)


def _until_next(point: Point) -> int:
    """After how many choices a world is saved again: sooner where that takes little."""
    worth = len(point.exchange) // BYTES
    return min(max(BETWEEN, worth), max(FARTHEST, worth // FARTHEST))
