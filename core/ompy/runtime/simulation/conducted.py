"""A rank's line to who conducts its world, and the engine that waits for what is said there.

Between two answers of the scheduler no time passes and nothing happens elsewhere, so what a rank
asks for without needing an answer (a packet sent, a timer) waits for its next call and goes along.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final

from ompy.compiled import Shown, ccall, cclass, cfunc
from ompy.data.errors import MPIError
from ompy.engine.stepped import SteppedEngine
from ompy.engine.timers import Timer
from ompy.net.base import LinkError
from ompy.runtime.simulation.line import Line, LineClosed
from ompy.runtime.simulation.twins import make_twin

ENDED: Final = 1  # exit code nobody reads: the world has ended around this rank
# ns of virtual time; arbitrary: about what a round of polling takes a rank, so that a program which
# tests in a loop gets on as fast as it would
POLL_COST: Final = 5_000
LOOK: Final = 1_000  # ns; arbitrary: about what a look at a clock takes Python, many times over
SETTLE: Final = 50  # ns of virtual time; arbitrary: enough for others to get in between two polls
ODD: Final = "odd"  # said by a rank that, told the same once more, did something else
BATCH: Final = 64  # calls; arbitrary: bounds what waits in memory
_HARMLESS: Final = frozenset(
    {"after", "ring", "transmit", "watch_path", "unwatch_path", "outages"}
)  # calls that change nothing that is ready here


def nothing_told(*_said: Any) -> None:
    """Of operations, where none are explored."""


@cclass
class Conducted:
    """This process's line to the scheduler, and what the scheduler says besides.

    Attributes:
        time: nanoseconds of the world's clock, which stands still between two answers.
        calling: a call is under way.
        ready: what is ready in each set of sources, as of the last answer.
        stale: something waits for the next call that may change that.
        on_news: told a rank and how it ended; what it is not there for, it is told when it is.
        on_death: told the same of one that has died while the world goes on.
        on_left: told a rank that has begun to finalize, and whether it never sent us anything.
        on_answer: told the number of what was asked, an error class, and the answer.
        on_direct: told what became of an operation, in a world that is explored.
        on_path: told watch, verdict and questions without an answer (`runtime/probes/client.py`).
        where: asked for a report of this rank, as text.
        standing: asked how it stands (`standing.py`).
        on_stop: called when the world ends around this rank; returns what it has to say at its end.
    """

    _caller: int
    _expected: Any
    _line: Any
    _past: Any
    _untold: list[Any]
    _waiting: list[Any]
    calling: bool
    on_answer: Any
    on_death: Any
    on_direct: Any
    on_left: Any
    on_news: Any
    on_path: Any
    on_stop: Any
    ready: Any
    stale: bool
    standing: Any
    time: int
    where: Any
    __slots__ = tuple(__annotations__)

    def __init__(self, line: Line) -> None:
        self.time = 0
        self.calling = False
        self.ready = {}
        self.stale = False
        self.on_news = None
        self.on_death = None
        self.on_left = None
        self.on_direct = nothing_told
        self.on_path = None
        self.on_answer = None
        self.where = dict
        self.standing = dict
        self.on_stop = dict
        self._caller = 0  # the thread that calls
        self._line = line
        self._past = deque()  # answers, and what was said to each then
        self._expected = None
        self._waiting = []
        self._untold = []

    def later(self, *call: Any) -> None:
        """Have something done before the next call; it has no answer."""
        self._waiting.append(call)
        self.stale = self.stale or call[0] not in _HARMLESS
        if len(self._waiting) >= BATCH:
            self.call("nothing")

    def record_call(self, event: tuple[Any, ...]) -> None:
        """An entry of the record of calls; it goes along with the next call."""
        if not self._waiting or self._waiting[-1][0] != "checked":
            self._waiting.append(("checked", []))
        self._waiting[-1][1].append(event)

    def call(self, *call: Any) -> Any:
        """Have something done and wait for its answer. Others may run meanwhile.

        Raises:
            LinkError, MPIError: as the scheduler's side raised.
        """
        self._refuse_threads()
        self._waiting.append(call)
        batch, self._waiting = self._waiting, []
        self._caller = threading.get_ident()
        self.calling = True
        try:
            self._say(batch)
            return self.answer()
        except LineClosed:
            os._exit(ENDED)
        finally:
            self.calling = False

    @cfunc
    def _refuse_threads(self) -> None:
        """End the world if another thread waits for an answer: it would get this one's."""
        if self.calling and self._caller != threading.get_ident():
            self.refuse_threads()

    def refuse_threads(self) -> None:
        """End the world, which is none for several threads of a rank."""
        self._line.send([("threads",)])
        if not self.calling:  # nothing tells this process that it is over
            os._exit(ENDED)
        threading.Event().wait()  # this process ends with the world

    def watch_path(self, header: dict[str, Any]) -> None:
        """Have the agents of the world watch a path."""
        self.later("watch_path", header)

    def unwatch_path(self, watch: int) -> None:
        """Have them do so no more."""
        self.later("unwatch_path", watch)

    def tell_outages(self, began: int, fired: Mapping[int, int]) -> None:
        """Say which lasting faults have begun at this rank, and when."""
        self.later("outages", began, dict(fired))

    def say_where(self, where: dict[str, Any]) -> None:
        """Say without being asked where this rank is, unless the scheduler hears of it anyway."""
        if not self.calling:
            self._line.send([("here", where, {})])

    def end(self, code: int, report: dict[str, Any]) -> None:
        """The program has ended, and this process will."""
        self.calling = True
        self._say([*self._waiting, ("end", code, report)])

    @ccall
    def _say(self, batch: list[tuple[Any, ...]]) -> None:
        """Say it, unless who conducts the world has heard it from a twin that was told the same."""
        expected, self._expected = self._expected, None
        if expected is None:
            self._line.send(batch)
        elif expected != batch:
            self._line.send([(ODD,)])
            os._exit(ENDED)

    @cfunc
    def _heard(self) -> tuple[Any, ...]:
        """The next answer: of those that were sent together, or a new one."""
        if self._past:
            answer, self._expected = self._past.popleft()
            return tuple(answer)
        found: tuple[Any, ...] = self._line.receive()
        return found

    @cfunc
    def _hand_out(self, news: Sequence[Any]) -> None:
        """Tell who wants to know; what comes before the rank is up waits for it."""
        if not news and not self._untold:
            return
        told: dict[str, Callable[..., object] | None] = {
            "path": self.on_path,
            "left": self.on_left,
            "ended": self.on_news,
            "died": self.on_death,
            "answer": self.on_answer,
            "direct": self.on_direct,
        }
        self._untold += news
        if None not in told.values():
            news, self._untold = self._untold, []
            for what, *said in news:
                listener = told[what]
                assert listener is not None, "all are there"
                listener(*said)

    @ccall
    def answer(self) -> Any:
        """Wait for the scheduler, and do what it wants besides."""
        while True:
            self.time, kind, value, news, self.ready = self._heard()
            self.stale = False
            self._hand_out(news)
            match kind:
                case "link":
                    raise LinkError(value)
                case "refused":
                    raise MPIError(*value)
                case "where":
                    self._line.send([("here", self.where(), self.standing())])
                case "fork":
                    make_twin(self._line)
                case "past":
                    self._past.extend(value)
                case "stop":
                    self._line.send([("report", self.on_stop())])
                    os._exit(ENDED)
                case _:
                    return value


@cclass
class RemoteEngine(SteppedEngine):
    """Drives the rank of this process, on the scheduler's clock.

    Attributes:
        look_cost: ns of virtual time that a look at a clock takes.
    """

    look_cost = LOOK

    _world: Shown[Conducted]
    reason: object
    __slots__ = tuple(__annotations__)

    def __init__(self, world: Conducted, random: Random, breaks: Random) -> None:
        """Drive it, by what the scheduler says; the rest as for any `SteppedEngine`."""
        SteppedEngine.__init__(self, random, breaks, SETTLE)
        self.reason = None  # for the pause that it is in
        self._world = world

    @ccall
    def now(self) -> int:
        """Nanoseconds of the world's clock."""
        return self._world.time

    def call_later(self, delay: int, callback: Callable[[], object]) -> Timer:
        """Call `callback` later; the scheduler knows when to wake this rank."""
        timer = SteppedEngine.call_later(self, delay, callback)
        self._world.later("after", delay)
        return timer

    def pass_time(self, duration: int) -> None:
        """Have the scheduler's clock run on."""
        self._world.call("spend", duration)

    @ccall
    def progress(self) -> int:
        """Poll once, which costs a little virtual time."""
        self.spend(POLL_COST)
        return self.poll_all()

    def pause(self, reason: object) -> None:
        """Give the turn away; the scheduler asks for the reason when it wants to know."""
        self.reason = reason
        self._world.call("pause")
        self.reason = None

    def wake_after(self, delay: int) -> None:
        """Have the scheduler wake this rank."""
        self._world.later("after", delay)
