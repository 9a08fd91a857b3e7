"""Tests in the virtual world: all ranks are greenlets of this process, and a seed decides all."""

from __future__ import annotations

import inspect
import shlex
import sys
import traceback
from collections.abc import Callable
from typing import Any, Final, NamedTuple, NoReturn

import greenlet
import pytest

from pytest_ompy.alarm import TimeIsUpError, limit
from pytest_ompy.losses import View, failed_report, stuck_failure
from pytest_ompy.merge import Report, merge, ranks_text, with_prefix
from pytest_ompy.plan import Plan, fresh_registry
from pytest_ompy.stacks import Frame
from pytest_ompy.unreceived import unreceived

COMM: Final = "comm"
SEEDS_SHOWN: Final = 10  # arbitrary: a line of a terminal
START_SPREAD_NS: Final = 50_000  # ns of virtual time; arbitrary: several messages long
_OUT_OF_WORLD: Final = (KeyboardInterrupt, pytest.exit.Exception, TimeIsUpError)


class LaterCommunicator:
    """What `comm` is before the virtual world begins, in which every rank gets its own."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        pytest.fail(
            "in the virtual world comm exists only inside the test function: fixtures are set up "
            "once for all ranks. Use comm in the test, or world='real'",
            pytrace=False,
        )


class World:
    """One run of a test in one virtual world.

    Attributes:
        failures: what ranks raised.
        skips: ranks that skipped the test.
        stuck: what was with ranks that did not come to the end of the test, by rank.
        frames: where ranks were that were ended, outermost frame first.
        at_fault: of the stuck ranks, the one that had the core when time was up; or None.
    """

    def __init__(self, function: Callable[[Any], None], strict: bool) -> None:
        self.failures: dict[int, BaseException] = {}
        self.skips: dict[int, BaseException] = {}
        self.stuck: dict[int, str] = {}
        self.frames: dict[int, list[Frame]] = {}
        self.at_fault: int | None = None
        self._function = function
        self._strict = strict
        self._chance: Any = None
        self._meeting: Any = None
        self._shared: Any = None

    def run(self, plan: Plan, size: int, seed: int) -> None:
        """Run it to its end, whatever that is."""
        from ompy.engine.virtual import Deadlock, RankFailed
        from ompy.mpi.interpreter import SharedInterpreter
        from ompy.runtime.virtual import VirtualJob

        from pytest_ompy.meeting import Meeting

        job = VirtualJob(size, fresh_registry(plan.mca), seed=seed)
        self._chance = job.conductor.random
        self._meeting = Meeting(size)
        try:
            with SharedInterpreter() as self._shared:
                job.run(self._rank)
        except Deadlock as problem:
            self._deadlocked(problem, range(size))
        except RankFailed as problem:
            cause = problem.__cause__
            if not isinstance(cause, TimeIsUpError):
                raise (cause or problem) from None
            self._timed_out(plan.timeout)
        except TimeIsUpError:
            self._timed_out(plan.timeout)

    def _rank(self, process: Any) -> None:
        """What each rank runs."""
        rank = process.context.rank
        self._shared.join(process)
        try:
            self._test(process)
        except (greenlet.GreenletExit, *_OUT_OF_WORLD) as end:
            self.frames[rank] = _frames_of(end)
            if isinstance(end, TimeIsUpError):
                self.at_fault = rank
            raise
        except BaseException as problem:  # of the user's program, whatever it is
            self.failures[rank] = problem

    def _test(self, process: Any) -> None:
        from ompy import MPI

        comm = MPI.COMM_WORLD.Dup()
        comm.Set_name(COMM)
        process.context.engine.spend(self._chance.randrange(START_SPREAD_NS))
        try:
            self._function(comm)
        except pytest.skip.Exception as skip:
            self.skips[process.context.rank] = skip
        self._meeting.wait(process.context.engine, process.context.rank)
        found = unreceived([comm, MPI.COMM_WORLD])
        if found and self._strict:
            pytest.fail(found, pytrace=False)
        comm.free()

    def _deadlocked(self, problem: Any, ranks: range) -> None:
        if not problem.waits:  # no deadlock: there was no end
            self.stuck = {rank: str(problem) for rank in ranks if rank not in self.failures}
            return
        for rank, reason in problem.waits.items():
            if rank not in self.failures and rank not in self._meeting.present:
                self.stuck[rank] = f"deadlock: it waits for {reason}"

    def _timed_out(self, timeout: float) -> None:
        late = set(self.frames) - self._meeting.present - set(self.failures)
        for rank in sorted(late or self.frames) or [0]:
            self.stuck[rank] = f"no end after {timeout:g} s"


def _frames_of(end: BaseException) -> list[Frame]:
    """Where a rank was when it was ended."""
    return [
        Frame(entry.filename, entry.lineno or 0, entry.name)
        for entry in traceback.extract_tb(end.__traceback__)
    ]


class Story(NamedTuple):
    """What is to be told of a test after all its seeds.

    Attributes:
        seed: of the failure that is told; the others failed, too.
        failed: seeds that failed.
        tried: seeds that were run.
        reports: of the ranks of that failure.
        size: number of ranks.
        note: of a test that passed.
    """

    seed: int
    failed: tuple[int, ...]
    tried: int
    reports: dict[int, Report]
    size: int
    note: str


class VirtualRuns:
    """Runs tests in virtual worlds, one for each seed, and tells of the first that failed."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        directory = str(config.invocation_params.dir)
        self._view = View(directory, full=bool(config.getoption("fulltrace")))
        self._stories: dict[pytest.Item, Story] = {}

    def run(self, item: pytest.Function, plan: Plan, size: int) -> None:
        """Run a test once for each seed.

        Raises:
            BaseException: what the test raised on the first rank that failed with the first seed
                that did, or what pytest has for a skip or a failure.
        """
        function = _test_function(item)
        worlds: dict[int, World] = {}
        with limit(plan.timeout):
            for seed in plan.seeds:
                world = worlds[seed] = World(function, plan.unreceived == "error")
                world.run(plan, size, seed)
                if world.stuck and any("no end after" in text for text in world.stuck.values()):
                    break
        failed = tuple(seed for seed, world in worlds.items() if world.failures or world.stuck)
        if failed:
            self._fail(item, worlds, failed, size)
        self._pass(item, worlds, size)

    def _fail(
        self, item: pytest.Function, worlds: dict[int, World], failed: tuple[int, ...], size: int
    ) -> NoReturn:
        world = worlds[failed[0]]
        reports = {rank: self._raised(item, problem) for rank, problem in world.failures.items()}
        for rank, what in world.stuck.items():
            failure = stuck_failure(what, world.frames.get(rank, []), self._view)
            consequence = bool(world.failures) or world.at_fault not in (None, rank)
            reports[rank] = failed_report("call", failure, consequence=consequence)
        story = Story(failed[0], failed, len(worlds), reports, size, "")
        self._stories[item] = story
        if world.failures:
            raise world.failures[min(world.failures)]
        pytest.fail("; ".join(f"rank {rank}: {text}" for rank, text in world.stuck.items()), False)

    def _pass(self, item: pytest.Function, worlds: dict[int, World], size: int) -> None:
        """No rank failed; say who skipped."""
        skips = [(rank, skip) for world in worlds.values() for rank, skip in world.skips.items()]
        if not skips:
            return
        if len(skips) == size * len(worlds):
            raise skips[0][1]
        note = f"skipped on {ranks_text(rank for rank, _ in skips)} of {size}"
        self._stories[item] = Story(0, (), len(worlds), {}, size, note)

    def _raised(self, item: pytest.Function, problem: BaseException) -> Report:
        """The report pytest makes of an exception of a rank."""

        def again() -> None:
            raise problem

        call = pytest.CallInfo.from_call(again, when="call")
        report = pytest.TestReport.from_item_and_call(item, call)
        return self._packed(report)

    def complete(self, item: pytest.Item, report: pytest.TestReport) -> pytest.TestReport:
        """The report of a test with its story: ranks and seed, and how to repeat it."""
        story = self._stories.pop(item, None)
        if story is None:
            return report
        packed = self._packed(report)
        if story.note and report.passed:
            packed["ompy_note"] = story.note
        elif story.reports and not report.passed:
            failure = merge(story.reports, story.size)["longrepr"]
            packed["longrepr"] = with_prefix(failure, f"seed {story.seed}, ")
            packed["sections"].append(("virtual world", self._how_to_repeat(item, story)))
        return self._revived(packed)

    def _how_to_repeat(self, item: pytest.Item, story: Story) -> str:
        text = f"failed with seed {story.seed}"
        if story.tried > 1:
            seeds = ", ".join(map(str, story.failed[:SEEDS_SHOWN]))
            more = ", ..." if len(story.failed) > SEEDS_SHOWN else ""
            text += f" ({len(story.failed)} of {story.tried} seeds failed: {seeds}{more})"
        command = f"pytest {shlex.quote(item.nodeid)} --ompy-seed {story.seed}"
        return f"{text}; this one alone:\n    {command}"

    def _packed(self, report: pytest.TestReport) -> Report:
        packed: Report = self._config.hook.pytest_report_to_serializable(
            config=self._config, report=report
        )
        return packed

    def _revived(self, packed: Report) -> pytest.TestReport:
        revived: pytest.TestReport = self._config.hook.pytest_report_from_serializable(
            config=self._config, data=packed
        )
        return revived


def _test_function(item: pytest.Function) -> Callable[[Any], None]:
    """The test, with everything but its communicator."""
    if inspect.iscoroutinefunction(item.obj):
        pytest.fail("a test in the virtual world cannot be async: write world='real'", False)
    _check_mpi4py(item)
    names = inspect.signature(item.obj).parameters
    arguments = {name: item.funcargs[name] for name in names if name in item.funcargs}
    own = isinstance(arguments.get(COMM), LaterCommunicator)

    def function(comm: Any) -> None:
        item.obj(**{**arguments, **({COMM: comm} if own else {})})

    return function


def _check_mpi4py(item: pytest.Function) -> None:
    """A test module that has imported a foreign MPI would not see the virtual ranks."""
    import ompy.MPI

    foreign = sys.modules.get("mpi4py.MPI")
    if foreign is None or foreign is ompy.MPI:
        return
    if any(value is foreign for value in vars(item.module).values()):
        path = getattr(foreign, "__file__", "?")
        pytest.fail(
            f"the MPI of this module is {path}, which knows no virtual ranks: write "
            "`from ompy import MPI`, or uninstall mpi4py so that ompy's takes its name",
            pytrace=False,
        )
