"""Schedules: collective algorithms that stop between their steps.

An algorithm is a generator. It posts the receives and sends of a step through its `Exchange` and
yields; when it is resumed they are complete. So there is one text of each algorithm, and two ways
to run it: `complete` waits for each step in the caller (blocking collectives), a `Progression` is
resumed by the completions themselves (nonblocking and persistent ones).

A completion may come from anywhere in the PML, so it only queues the progression; the engine
takes the step behind the pollers of that round. Steps therefore run with the rank's lock held, and
a reduction's function with them.

Source: reference openmpi.md 0.6; rounds as libnbc has them (Hoefler, Lumsdaine and Rehm 2007),
but not laid down beforehand: a step may depend on what came in the last one.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ompy.compiled import DECLARING, ccall, cclass, cfunc
from ompy.data.errors import ERR_OTHER, MPIError
from ompy.data.request import Request
from ompy.engine.base import Poller
from ompy.engine.timers import Timer
from ompy.frameworks.collectives.exchange import WITHDRAWAL_TIMEOUT, Exchange
from ompy.frameworks.collectives.patience import PATIENCE, LongWait

if DECLARING:
    from ompy.engine.base import Engine

Schedule = Generator[None, None, None]
Steps = Generator[None, None, memoryview]  # a part of a schedule that gives its result


def complete_schedule(exchange: Exchange, schedule: Schedule) -> None:
    """Run a schedule, waiting for each of its steps.

    Raises:
        MPIError: a message failed; what was posted is taken back.
    """
    try:
        for _ in schedule:
            exchange.finish()
    except BaseException as problem:
        schedule.close()
        exchange.withdraw(patient=isinstance(problem, MPIError))
        if not isinstance(problem, Exception):
            raise
        exchange.abandon(problem)
        if isinstance(problem, MPIError):
            raise exchange.explained(problem) from problem.__cause__
        raise


@cclass
class CollectiveRequest(Request):
    """A collective operation under way.

    Attributes:
        problem: what a user's reduction function raised, or None.
    """

    problem: Exception | None
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        Request.__init__(self)
        self.problem = None


@cclass
class LongCalls:
    """The calls of a rank that nobody waits in, to find out which take long.

    A timer for each would stay among the engine's long after most of them have ended. So there is
    one for all: who is here when it comes for the second time has been here for `PATIENCE` or more.
    """

    _engine: Engine
    _known: dict[Any, Any]
    _new: dict[Any, Any]
    _timed: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known = {}
        self._new = {}
        self._timed = False

    @ccall
    def watch(self, call: Progression) -> None:
        """A call has begun. The rank's lock is held, here and below."""
        self._new[call] = None
        if not self._timed:
            self._time()

    @cfunc
    def _time(self) -> None:
        self._timed = True
        self._engine.call_later(PATIENCE, self._look)

    @ccall
    def forget(self, call: Progression) -> None:
        """It has ended."""
        if self._new.pop(call, self) is self:
            self._known.pop(call, None)

    def _look(self) -> None:
        self._timed = False
        long, self._known, self._new = self._known, self._new, {}
        if self._known:
            self._time()
        for call in long:
            call.inquire()


@ccall
def long_calls_of(context: Any) -> LongCalls:
    """Those of a rank, made on first use."""
    found: LongCalls | None = context.long_calls
    if found is None:
        found = context.long_calls = LongCalls(context.engine)
    return found


@cclass
class Progression(Poller):
    """Runs a schedule by the completions of its messages.

    Attributes:
        request: completes when the schedule has ended, or with the first failure.
    """

    _engine: Engine
    _exchange: Exchange
    _failure: MPIError | None
    _long: LongWait | None
    _long_calls: LongCalls | None
    _missing: int
    _queued: bool
    _schedule: Schedule
    _timer: Timer | None
    request: CollectiveRequest
    __slots__ = tuple(__annotations__)

    def __init__(self, exchange: Exchange, schedule: Schedule) -> None:
        self.request = CollectiveRequest()
        self._engine = exchange.communicator.context.engine
        self._exchange = exchange
        self._schedule = schedule
        self._missing = 0
        self._queued = False
        self._failure = None
        self._timer = None
        self._long = None
        self._long_calls = None

    @ccall
    def begin(self) -> CollectiveRequest:
        """Take the first step, and all that follow without waiting."""
        with self._engine.lock:
            self._advance()
            if not self.request.complete and self._exchange.word:
                self._long_calls = long_calls_of(self._exchange.communicator.context)
                self._long_calls.watch(self)
        return self.request

    def inquire(self) -> None:
        """It takes long: ask who is waited for. Their answer may be that it is another call."""
        if self.request.complete or self._failure is not None:
            return
        exchange = self._exchange
        self._long = LongWait(exchange.communicator, exchange.word, exchange.awaited, self.request)
        self._long.over.notify(self._differs)
        self._long.begin()

    def _differs(self) -> None:
        problem = self._long.problem if self._long is not None else None
        if problem is not None and self._failure is None and not self.request.complete:
            self._withdraw(problem)

    @cfunc
    def _end(self) -> None:
        """Nobody has to ask any more."""
        if self._long_calls is not None:
            self._long_calls.forget(self)
        if self._long is not None:
            self._long.leave()

    @ccall
    def poll(self) -> int:
        """Take the next step."""
        self._queued = False
        if self.request.complete or self._failure is not None:
            return 0
        self._advance()
        return 1

    @cfunc
    def _advance(self) -> None:
        try:
            while True:
                self._exchange.settle()
                next(self._schedule)
                if self._await(self._exchange.incomplete()):
                    return
        except StopIteration:
            self._end()
            self.request.finish()
        except MPIError as problem:
            self._withdraw(problem)
        except Exception as problem:  # of a user's function; the API ends the job
            self.request.problem = problem
            self._withdraw(MPIError(ERR_OTHER, f"{type(problem).__name__} in a reduction"))

    @cfunc
    def _await(self, requests: list[Request]) -> bool:
        """Be told when these complete; whether there are any."""
        self._missing = len(requests)
        for request in requests:
            request.notify(self._arrived)
        return self._missing > 0

    def _arrived(self) -> None:
        if self._failure is not None:
            self._may_fail()
            return
        self._missing -= 1
        if not self._queued and (not self._missing or self._exchange.failed()):
            self._queued = True
            self._engine.poll_soon(self)

    @cfunc
    def _withdraw(self, problem: MPIError) -> None:
        """Fail, when nothing is stored in the user's memory any more or after a while."""
        self._failure = self._exchange.explained(problem)
        self._schedule.close()
        for request in self._exchange.cancel():
            request.notify(self._arrived)
        self._exchange.abandon(problem)
        self._may_fail()
        if not self.request.complete:
            self._timer = self._engine.call_later(WITHDRAWAL_TIMEOUT, self._fail)

    @cfunc
    def _may_fail(self) -> None:
        if not self._exchange.receiving():
            self._fail()

    def _fail(self) -> None:
        assert self._failure is not None, "who withdraws has a reason"
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._end()
        self.request.fail(self._failure.code, self._failure.detail)
