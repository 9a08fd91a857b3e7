"""The virtual engine: any number of ranks in one process, on a clock that jumps.

Each rank is a greenlet. Exactly one runs at a time; when all wait, the scheduler advances
the clock to the next event. One seed decides every choice there is, so the same seed gives
the same run, event for event. There is no sleep, no wall clock and no thread.

An interleaving is explored at each point where a rank may lose the core: when it waits,
when it polls (`progress`), and when it computes (`spend`). Polling costs virtual time, so
that a program which spins on `Iprobe` advances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final, Protocol

import greenlet

from ompy.engine.stepped import SteppedEngine
from ompy.engine.timers import TimerHeap

POLL_COST: Final = 50  # ns of virtual time; arbitrary: any positive number makes spinning end
STEPS_MAX: Final = 5_000_000  # arbitrary: far above any test, far below for ever


class Closable(Protocol):
    """Something of the network."""

    def close(self) -> None:
        """Give it back."""


class Deadlock(RuntimeError):
    """Every rank waits and nothing is under way.

    Attributes:
        waits: what each rank that has not ended waits for, in words; empty if there was no end.
    """

    def __init__(self, text: str, waits: Mapping[int, str] | None = None) -> None:
        super().__init__(text)
        self.waits = dict(waits or {})


class RankFailed(RuntimeError):
    """A rank's program raised; the exception is the cause."""

    def __init__(self, rank: int, problem: BaseException) -> None:
        super().__init__(f"rank {rank}: {type(problem).__name__}: {problem}")
        self.rank = rank
        self._problem = problem

    def __reduce__(self) -> tuple[type[RankFailed], tuple[int, BaseException]]:
        """For sweeps, whose worlds run in other processes."""
        return type(self), (self.rank, self._problem)


class Scheduler:
    """Owns the clock, the seed and the order in which ranks run.

    Attributes:
        time: nanoseconds since the beginning of the world.
        random: every choice in the world is drawn from it.
        steps: how many times a rank was given the core.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.time = 0
        self.steps = 0
        self._events = TimerHeap()
        self._engines: list[VirtualEngine] = []
        self._ready: list[VirtualEngine] = []
        self._greenlet: greenlet.greenlet | None = None
        self._failure: RankFailed | None = None
        self._results: list[object] = []
        # asked before a rank is given the core: true if it ends there and then
        self.dies: Callable[[VirtualEngine], bool] | None = None

    def engine(self) -> VirtualEngine:
        """A new rank's engine."""
        engine = VirtualEngine(self, len(self._engines))
        self._engines.append(engine)
        return engine

    def after(self, delay: int, callback: Callable[[], object]) -> None:
        """Let something happen in the world `delay` nanoseconds from now."""
        self._events.add_timer(self.time + delay, callback)

    def timers(self) -> list[tuple[int, Callable[[], object]]]:
        """What is to happen later, and when, in order."""
        return [(one.deadline, one.callback) for one in self._events.pending() if one.callback]

    def stream(self, *decision: object) -> Random:
        """Where decisions of one kind and place are drawn from, as ("packet", 0, 1, "rail0").

        Here all from one, so each choice is a new one when anything before it is; whoever compares
        worlds that differ little gives each its own (`runtime/simulation/simulated_world.py`).
        """
        return self.random

    def choose(self, ready: Sequence[VirtualEngine]) -> int:
        """Which of the ranks that can go on does so now."""
        return self.random.randrange(len(ready))

    def run_engines(self, programs: Sequence[Callable[[], object]]) -> list[object]:
        """Run one program per engine to the end.

        Returns:
            What the programs returned, by rank.

        Raises:
            RankFailed: a program raised; the others were abandoned where they stood.
            Deadlock: nobody can go on.
        """
        assert len(programs) == len(self._engines), "one program per rank"
        results = self._results = [None] * len(programs)
        self._greenlet = greenlet.getcurrent()
        for engine, program in zip(self._engines, programs, strict=True):
            engine._start(program, results)
        self._ready = list(self._engines)
        try:
            while any(not engine._done for engine in self._engines):
                self._step()
        finally:
            self._abandon()
        return results

    def begin_engine(self, engine: VirtualEngine, program: Callable[[], object]) -> None:
        """Run one more from now on; called while `run_engines` runs the others."""
        self._results.append(None)
        engine._start(program, self._results)
        self._ready.append(engine)

    def end_engine(self, engine: VirtualEngine) -> None:
        """A rank ends where it stands, as a process that is killed: nothing of it runs again."""
        engine._done = True
        if engine in self._ready:
            self._ready.remove(engine)
        if engine._greenlet is greenlet.getcurrent():
            engine._block("nothing any more")

    def _step(self) -> None:
        if self._ready:
            engine = self._ready.pop(self.choose(self._ready))
            engine._waiting = False
            self.steps += 1
            if self.dies is not None and self.dies(engine):
                self.end_engine(engine)
                return
            if self.steps > STEPS_MAX:
                raise Deadlock(f"no end after {STEPS_MAX} steps; seed {self.seed}")
            engine._resume()
            if self._failure is not None:
                raise self._failure from self._failure.__cause__
            return
        deadline = self._events.next_deadline()
        if deadline is None:
            waits = {e.rank: str(e._reason) for e in self._engines if not e._done}
            stuck = [f"rank {rank} waits for {reason}" for rank, reason in waits.items()]
            raise Deadlock("; ".join(stuck) + f" (seed {self.seed})", waits)
        self.time = max(self.time, deadline)
        self._events.run_due(self.time)

    def _abandon(self) -> None:
        for engine in self._engines:
            engine._kill()
        self._ready.clear()

    def _wake(self, engine: VirtualEngine) -> None:
        if engine._waiting and not engine._done and engine not in self._ready:
            self._ready.append(engine)

    def _switch_away(self) -> None:
        assert self._greenlet is not None, "a rank runs only inside run()"
        self._greenlet.switch()


class VirtualEngine(SteppedEngine):
    """Drives one rank of a virtual world.

    Attributes:
        rank: which one this is.
        scheduler: of the world.
        sources: what it has of the network, so that it goes with it.
    """

    __slots__ = ("_done", "_greenlet", "_reason", "_waiting", "rank", "scheduler", "sources")

    def __init__(self, scheduler: Scheduler, rank: int) -> None:
        chance = scheduler.stream("engine", rank)
        super().__init__(chance, chance, POLL_COST)
        self.scheduler = scheduler
        self.rank = rank
        self.sources: list[Closable] = []
        self._greenlet: greenlet.greenlet | None = None
        self._waiting = True
        self._done = False
        self._reason: object = "its first turn"

    def now(self) -> int:
        """Nanoseconds of the world's clock."""
        return self.scheduler.time

    def wake(self) -> None:
        """Something this rank may be waiting for has happened."""
        self.scheduler._wake(self)

    def call_later(self, delay: int, callback: Callable[[], object]):  # type: ignore[no-untyped-def]
        """Call `callback` `delay` nanoseconds from now; the world knows when to wake the rank."""
        timer = super().call_later(delay, callback)
        self.scheduler.after(delay, self.wake)
        return timer

    def pass_time(self, duration: int) -> None:
        """Let the scheduler's clock run on."""
        self.scheduler.after(duration, self.wake)
        end = self.scheduler.time + duration
        while self.scheduler.time < end:
            self._block(f"{duration} ns of computing")

    def progress(self) -> int:
        """Poll once, which costs a little virtual time."""
        self.spend(POLL_COST)
        return self.poll_all()

    def wake_after(self, delay: int) -> None:
        """Have the scheduler wake this rank."""
        self.scheduler.after(delay, self.wake)

    def pause(self, reason: object) -> None:
        """Lose the core until something wakes this rank; nothing is polled, but devices work on."""
        self._block(reason)
        if self._devices.armed:
            self._devices.run_due(self.now())

    def _block(self, reason: object) -> None:
        self._reason = reason
        self._waiting = True
        self.scheduler._switch_away()

    def _start(self, program: Callable[[], object], results: list[object]) -> None:
        def body() -> None:
            try:
                results[self.rank] = program()
            except greenlet.GreenletExit:
                raise
            except BaseException as problem:  # the world must hear of every end
                failure = RankFailed(self.rank, problem)
                failure.__cause__ = problem
                self.scheduler._failure = failure
            self._done = True

        self._greenlet = greenlet.greenlet(body)

    def _resume(self) -> None:
        assert self._greenlet is not None
        self._greenlet.parent = greenlet.getcurrent()
        self._greenlet.switch()

    def _kill(self) -> None:
        if self._greenlet is not None and not self._greenlet.dead:
            self._done = True
            if self._greenlet:
                self._greenlet.throw(greenlet.GreenletExit)
        self._greenlet = None
