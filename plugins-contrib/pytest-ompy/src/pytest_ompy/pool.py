"""A pool: the ranks of one job, kept between tests, and how a test is run on them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any, Final, NamedTuple, Protocol

from pytest_ompy.channel import GoneError, Message, make_registration_sockets, receive_registration
from pytest_ompy.checked import CheckReport, Found
from pytest_ompy.job import JobProcess
from pytest_ompy.merge import Report
from pytest_ompy.plan import Pairs
from pytest_ompy.remote_rank import Loss, RemoteRank, TestRun

START_PATIENCE_S: Final = 120.0  # s; arbitrary: importing and collecting on a slow machine
END_PATIENCE_S: Final = 5.0  # s; arbitrary: what fixtures of modules and sessions may take to end
STACK_PATIENCE_S: Final = 2.0  # s; arbitrary: code that is not Python may take its time
_POLL_S: Final = 0.01  # s; arbitrary: how often is looked whether they are written
CHECK_PATIENCE_S: Final = 60.0  # s; arbitrary: the checker looks at every call of a test
_REPORT_PATIENCE_S: Final = 5.0  # s; arbitrary: ompy-run says why it ends within moments


class PoolKey(NamedTuple):
    """What makes two tests share a pool."""

    size: int
    mca: Pairs
    check: bool


class PoolError(RuntimeError):
    """A pool could not be started; the text says why."""


class Limits(NamedTuple):
    """How long a test may take.

    Attributes:
        timeout: seconds; 0 for ever.
        grace: seconds the other ranks get after the first has failed.
    """

    timeout: float
    grace: float


class Listener(Protocol):
    """Who is told what happens during a test."""

    def warned(self, message: Message) -> None:
        """A rank has warned."""

    def debugger_entered(self, rank: int, report: Report | None) -> None:
        """A rank's debugger gets the terminal, after this failure if there was one."""

    def debugger_asks(self, text: str) -> str:
        """A rank's debugger says something and wants a line; empty at the end of the input."""


class Pool:
    """n ranks that run one test after the other.

    Attributes:
        key: what it is for.
    """

    def __init__(
        self, key: PoolKey, start: Callable[[int], Message], directory: str, *, echo: bool
    ) -> None:
        """Start the processes; `wait_until_ready` waits for them.

        Args:
            key: what it is for.
            start: what a rank is told first.
            directory: to run in.
            echo: show what the ranks write.
        """
        self.key = key
        self._start = start
        self._registrations, theirs = make_registration_sockets()
        self._ranks: dict[int, RemoteRank] = {}
        self._checked = CheckReport() if key.check else None
        report = self._checked.path if self._checked is not None else ""
        self._job = JobProcess(key.size, key.mca, directory, theirs, echo, report)
        self._listener: Listener
        self._run = TestRun()
        self._began = 0.0
        self._first_failure = 0.0
        self._at_terminal: RemoteRank | None = None
        self._asking: list[tuple[RemoteRank, str]] = []
        self._ending_since = 0.0

    def wait_until_ready(self) -> None:
        """Return when every rank has collected its tests.

        Raises:
            PoolError: a rank cannot.
        """
        deadline = time.monotonic() + START_PATIENCE_S
        ready: dict[int, list[str]] = {}
        while len(ready) < self.key.size:
            if time.monotonic() > deadline:
                raise PoolError(self._why(f"the ranks were not ready after {START_PATIENCE_S:g} s"))
            for source in self._wait(deadline):
                if source is self._registrations:
                    self._admit()
                elif isinstance(source, RemoteRank):
                    self._take_ready(source, ready)
        self._registrations.close()
        problems = dict.fromkeys(text for texts in ready.values() for text in texts)
        if problems:
            raise PoolError("a rank cannot collect the tests:\n" + "\n".join(problems))

    def _admit(self) -> None:
        try:
            rank = RemoteRank(receive_registration(self._registrations))
            self._ranks[rank.number] = rank
            rank.channel.send("start", **self._start(rank.number))
        except GoneError:
            self._let_it_end()
            raise PoolError(self._why("the job has ended")) from None

    def _take_ready(self, rank: RemoteRank, ready: dict[int, list[str]]) -> None:
        try:
            message = rank.channel.receive()
        except GoneError:
            self._let_it_end()
            raise PoolError(self._why(f"rank {rank.number} has ended")) from None
        if message["what"] == "ready":
            ready[rank.number] = message["problems"]
        elif message["what"] == "broken":
            raise PoolError(f"pytest broke on rank {rank.number}:\n{message['text']}")

    def _why(self, what: str) -> str:
        return f"{what}.\n{self._job.text()}"

    def alive(self) -> bool:
        """Whether all ranks still wait for a test."""
        return self._job.running and not any(rank.channel.poll(0) for rank in self._ranks.values())

    def how_it_ended(self) -> str:
        """Why it is no longer alive."""
        self._let_it_end()
        return self._job.how_it_ended()

    # a test

    def run(
        self,
        test: str,
        following: str | None,
        limits: Limits,
        *,
        strict: bool,
        listener: Listener,
    ) -> TestRun:
        """Run a test on all ranks.

        Args:
            test: its node id.
            following: of the next test on this pool, or None: decides which fixtures stay.
            limits: of time.
            strict: messages that nobody received are a failure.
            listener: told what happens.
        """
        self._run = TestRun()
        self._listener = listener
        self._first_failure = 0.0
        self._at_terminal = None
        self._asking.clear()
        self._began = time.monotonic()
        for rank in self._ranks.values():
            rank.begin()
            self._say(rank, "run", test=test, next=following, strict=strict, once=self.key.check)
        while any(rank.busy for rank in self._ranks.values()):
            deadline = self._deadline(limits)
            for source in self._wait(deadline):
                if isinstance(source, RemoteRank):
                    self._hear(source)
            if self._run.exit is not None:
                break
            if any(rank.gone and rank.busy for rank in self._ranks.values()):
                self._report_dead_job()
                break
            if deadline is not None and time.monotonic() >= deadline:
                self._give_up()
                break
        return self._result()

    def _deadline(self, limits: Limits) -> float | None:
        ends = [self._began + limits.timeout] if limits.timeout else []
        if self._first_failure:
            ends.append(self._first_failure + limits.grace)
        return min(ends, default=None)

    def _say(self, rank: RemoteRank, what: str, **body: Any) -> None:
        with suppress(GoneError):  # its end is seen when it is listened to
            rank.channel.send(what, **body)

    def _hear(self, rank: RemoteRank) -> None:
        try:
            message = rank.channel.receive()
        except GoneError:
            rank.gone = True
            return
        match message["what"]:
            case "report":
                self._report(rank, message["data"])
            case "at end":
                self._at_end(rank, finalized=message["finalized"])
            case "done":
                rank.busy = False
                self._run.sound &= message["sound"]
                self._judge_end()
            case "warning":
                self._listener.warned(message)
            case "debugger":
                self._asking.append((rank, message["text"]))
                self._serve_debugger()
            case "debugger left":
                self._at_terminal = None
                self._serve_debugger()
            case "exit":
                self._run.exit = message["reason"]
            case "unknown" | "broken":
                self._cannot(rank, message)

    def _report(self, rank: RemoteRank, report: Report) -> None:
        rank.reports[report["when"]] = report
        if rank.failed:
            self._run.sound = False
            self._first_failure = self._first_failure or time.monotonic()
        self._judge_end()

    def _cannot(self, rank: RemoteRank, message: Message) -> None:
        if message["what"] == "unknown":
            text = (
                f"rank {rank.number} has collected {message['count']} tests, but not this one. "
                "What is collected must not depend on the rank."
            )
        else:
            text = f"pytest broke on rank {rank.number}:\n{message['text']}"
        rank.busy = False
        self._run.sound = False
        self._run.losses[rank.number] = Loss("broken", rank.phase, text, consequence=False)
        self._first_failure = self._first_failure or time.monotonic()
        self._judge_end()

    def _serve_debugger(self) -> None:
        """Let a debugger that asks have the terminal, until it goes on; no time passes."""
        for entry in self._asking:
            rank, text = entry
            if self._at_terminal in (None, rank):
                break
        else:
            return
        self._asking.remove(entry)
        asked = time.monotonic()
        if self._at_terminal is None:
            self._at_terminal = rank
            failures = [r for r in rank.reports.values() if r["outcome"] == "failed"]
            self._listener.debugger_entered(rank.number, failures[-1] if failures else None)
        line = self._listener.debugger_asks(text)
        self._say(rank, "input", line=line)
        passed = time.monotonic() - asked
        self._began += passed
        if self._first_failure:
            self._first_failure += passed

    # the end of a test's own code

    def _at_end(self, rank: RemoteRank, *, finalized: bool) -> None:
        rank.at_end = True
        self._run.sound &= not finalized
        self._judge_end()

    def _judge_end(self) -> None:
        """Once it is clear whether all ranks come to the end of the test, tell those that wait."""
        everybody = self._ranks.values()
        waiting = [rank for rank in everybody if rank.at_end and "call" not in rank.reports]
        if not waiting:
            return
        absent = [rank for rank in everybody if not rank.at_end]
        hopeless = any(rank.failed or not rank.busy for rank in everybody)
        if hopeless or not absent:
            for rank in waiting:
                rank.at_end = False
                look = not hopeless and self._run.sound and not self.key.check
                self._say(rank, "verdict", check=look)

    # ranks that do not come to the end

    def _give_up(self) -> None:
        """Time is up: see where the ranks are that have not finished."""
        late = [rank for rank in self._ranks.values() if rank.busy]
        self._collect_stacks(rank for rank in late if not rank.at_end)
        for rank in late:
            if rank.at_end:
                text = "it had come to the end of the test and waited for the others"
                loss = Loss("waiting", rank.phase, text, consequence=True)
            else:
                loss = Loss("hung", rank.phase, rank.stack(), bool(self._first_failure))
            self._run.losses[rank.number] = loss
        self._run.sound = False

    def _collect_stacks(self, ranks: Iterable[RemoteRank]) -> None:
        asked = list(ranks)
        for rank in asked:
            rank.ask_for_stack()
        deadline = time.monotonic() + STACK_PATIENCE_S
        while time.monotonic() < deadline:
            if all(rank.has_answered for rank in asked):
                return
            time.sleep(_POLL_S)

    def _report_dead_job(self) -> None:
        """A rank has gone, and with it the job: hear what the others have said, and why it was."""
        self._let_it_end()
        for rank in self._ranks.values():
            while not rank.gone and rank.channel.poll(0):
                self._hear(rank)
        first = self._job.first_failed_rank()
        if first is None:
            first = next(rank.number for rank in self._ranks.values() if rank.gone)
        why = self._job.how_it_ended()
        for rank in self._ranks.values():
            if not rank.busy:
                continue
            if rank.number == first:
                loss = Loss("died", rank.phase, why, consequence=False)
            else:
                text = f"ended with the job after rank {first} had gone"
                loss = Loss("ended", rank.phase, text, consequence=True)
            self._run.losses[rank.number] = loss
        if not self._ranks[first].busy and first not in self._run.losses:  # it was done already
            self._run.losses[first] = Loss("died", "teardown", why, consequence=False)
        self._run.sound = False

    def _let_it_end(self) -> None:
        """A rank has gone: `ompy-run` ends the others and says why."""
        seconds = CHECK_PATIENCE_S if self.key.check else _REPORT_PATIENCE_S
        deadline = time.monotonic() + seconds
        while self._job.output >= 0 and time.monotonic() < deadline:
            if wait([self._job.output], 0.1):
                self._job.read()
        self._job.kill()

    def _result(self) -> TestRun:
        for rank in self._ranks.values():
            for phase, report in rank.reports.items():
                self._run.reports[phase][rank.number] = report
        return self._run

    def _wait(self, deadline: float | None) -> Iterator[Any]:
        """What can be read now: registrations or ranks. The job's output is taken on the way."""
        sources: list[Any] = [rank.channel for rank in self._ranks.values() if not rank.gone]
        owners = {id(rank.channel): rank for rank in self._ranks.values()}
        if self._registrations.fileno() >= 0:
            sources.append(self._registrations)
        if self._job.output >= 0:
            sources.append(self._job.output)
        seconds = None if deadline is None else max(0.0, deadline - time.monotonic())
        for source in wait(sources, seconds):
            if source == self._job.output:
                self._job.read()
            else:
                yield owners.get(id(source), source)

    # the end

    def begin_end(self, *, hurry: bool) -> None:
        """Let the ranks end by themselves; `ended` and `kill` see to it.

        Args:
            hurry: without finalising MPI, which waits for messages that may never come.
        """
        self._ending_since = time.monotonic()
        for rank in self._ranks.values():
            self._say(rank, "end", hurry=hurry)

    def ended(self, seconds: float = 0.0) -> bool:
        """Whether it has ended, or had its time to and was killed.

        Args:
            seconds: to wait for it at most.
        """
        if self._job.output >= 0 and wait([self._job.output], seconds):
            self._job.read()
        late = time.monotonic() > self._ending_since + END_PATIENCE_S
        if self._job.running and self._job.output >= 0 and not late:
            return False
        self.kill()
        return True

    def findings(self, *, hung: bool) -> list[Found]:
        """End it, and say what the checker has found.

        Args:
            hung: ranks do not come to the end by themselves.
        """
        if hung:
            self._job.end()
        else:
            self.begin_end(hurry=not self._run.sound)
        self._let_it_end()
        found = self._checked.read() if self._checked is not None else []
        self.kill()
        return found

    def kill(self) -> None:
        """End all processes at once."""
        self._job.kill()
        if self._checked is not None:
            self._checked.remove()
        if self._registrations.fileno() >= 0:
            self._registrations.close()
        for rank in self._ranks.values():
            rank.close()
        self._ranks.clear()
