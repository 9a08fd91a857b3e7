"""Tests in the virtual world: all ranks are greenlets of this process, and a seed decides all."""

from __future__ import annotations

import inspect
import shlex
import sys
import traceback
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Final, NamedTuple, NoReturn

import greenlet
import pytest

from pytest_ompy.alarm import TimeIsUpError, limit
from pytest_ompy.losses import View, failed_report, stuck_failure
from pytest_ompy.merge import Report, merge, ranks_text, with_prefix
from pytest_ompy.plan import Plan, fresh_registry
from pytest_ompy.serialised import packed, revived
from pytest_ompy.stacks import Frame
from pytest_ompy.unreceived import unreceived

SEEDS_SHOWN: Final = 10  # arbitrary: a line of a terminal
START_SPREAD_NS: Final = 50_000  # ns of virtual time; arbitrary: several messages long
_OUT_OF_WORLD: Final = (KeyboardInterrupt, pytest.exit.Exception, TimeIsUpError)


def traced(function: Callable[..., None]) -> Callable[..., None]:
    """A test function that begins in pytest's debugger, as with `--trace`."""
    from _pytest.debugging import pytestPDB

    return partial(pytestPDB._init_pdb("runcall").runcall, function)  # noqa: SLF001 - as pytest's own `--trace` has it


class LaterCommunicator:
    """What `comm` is before the virtual world begins, in which every rank gets its own."""

    def __getattr__(self, name: str) -> Any:
        from ompy.mpi.communicators.intracomm import Intracomm

        if name.startswith("_") or not hasattr(Intracomm, name):  # whoever shows or copies it asks
            raise AttributeError(name)
        pytest.fail(
            f"comm.{name}: in the virtual world comm exists only inside the test function, since "
            "fixtures are set up once for all ranks. Use comm in the test, or world='real'",
            pytrace=False,
        )


class LaterGasnet:
    """What `gasnet` is before the virtual world begins, in which every rank gets its own."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # whoever shows or copies it asks
            raise AttributeError(name)
        pytest.fail(f"gasnet.{name}: gasnet exists only inside the test function", pytrace=False)


def _own(value: Any, comm: Any, gasnet: Any) -> Any:
    """A rank's own value of an argument: of these two there is one for each."""
    if isinstance(value, LaterGasnet):
        return gasnet
    return comm if isinstance(value, LaterCommunicator) else value


class World:
    """One run of a test in one virtual world.

    Attributes:
        failures: what ranks raised.
        skips: ranks that skipped the test.
        stuck: what was with ranks that did not come to the end of the test, by rank.
        frames: where ranks were that were ended, outermost frame first.
        out_of_time: it was ended by the time limit.
        at_fault: of the stuck ranks, the one that had the core when time was up; or None.
    """

    def __init__(self, function: Callable[[Any, Any], None], strict: bool) -> None:
        self.failures: dict[int, BaseException] = {}
        self.skips: dict[int, BaseException] = {}
        self.stuck: dict[int, str] = {}
        self.frames: dict[int, list[Frame]] = {}
        self.at_fault: int | None = None
        self.out_of_time = False
        self._function = function
        self._strict = strict
        self._chance: Any = None
        self._meeting: Any = None
        self._shared: Any = None
        self._failed: set[int] = set()

    def run(self, plan: Plan, size: int, seed: int) -> None:
        """Run it to its end, whatever that is."""
        from ompy.engine.virtual_engine import Deadlock, RankFailed
        from ompy.mpi.processes.interpreter import SharedInterpreter
        from ompy.runtime.simulation.virtual_job import VirtualJob

        from pytest_ompy.meeting import Meeting

        job = VirtualJob(size, fresh_registry(plan.mca), seed=seed)
        self._chance = job.scheduler.random
        self._failed = job.failed
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
            process.context.leaves = False  # who waits for it is not told that it has left
            self._failed.add(rank)

    def _test(self, process: Any) -> None:
        from ompy import MPI

        comm = MPI.COMM_WORLD.Dup()
        comm.Set_name("comm")
        gasnet = _gasnet_of(process)
        process.context.engine.spend(self._chance.randrange(START_SPREAD_NS))
        try:
            self._function(comm, gasnet)
        except pytest.skip.Exception as skip:
            self.skips[process.context.rank] = skip
        except SystemExit as end:
            if end.code or not _was_up(gasnet):  # exit(0) is how a program of GASNet ends
                raise
        gasnet.finish()
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
        self.out_of_time = True
        late = set(self.frames) - self._meeting.present - set(self.failures)
        for rank in sorted(late or self.frames) or [0]:
            self.stuck[rank] = f"no end after {timeout:g} s"


def _gasnet_of(process: Any) -> Any:
    """GASNet of one rank, before `init`."""
    from ompy.gasnet import Gasnet
    from ompy.runtime.ranks.conduit_selection import select_conduit

    return Gasnet(partial(select_conduit, process))


def _was_up(gasnet: Any) -> bool:
    """Whether a rank has called `init`, be it over or not."""
    from ompy.gasnet import NotInitialised

    try:
        gasnet.mynode()
    except NotInitialised:
        return False
    return True


def _frames_of(end: BaseException) -> list[Frame]:
    """Where a rank was when it was ended."""
    return [
        Frame(entry.filename, entry.lineno or 0, entry.name)
        for entry in traceback.extract_tb(end.__traceback__)
    ]


class Story(NamedTuple):
    """What is to be told of a test after all its seeds.

    Attributes:
        raised: what the test has ended with; None if it has passed.
        seed: of the failure that is told.
        failed: all seeds that failed.
        tried: how many were run.
        world: of the failure.
        size: number of ranks.
        note: of a test that has passed.
    """

    raised: BaseException | None
    seed: int
    failed: tuple[int, ...]
    tried: int
    world: World | None
    size: int
    note: str


class VirtualRuns:
    """Runs tests in virtual worlds, one for each seed, and tells of the first that failed."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        directory = str(config.invocation_params.dir)
        self._view = View(directory, full=bool(config.getoption("fulltrace", False)))
        self._stories: dict[pytest.Item, Story] = {}
        self._looked_at: int | None = config.getoption("ompy_pdb")

    def run(self, item: pytest.Function, plan: Plan, size: int) -> None:
        """Run a test once for each seed.

        With hypothesis' `@given` that is done for each of its examples: all ranks get the same.

        Raises:
            BaseException: what the test raised on the first rank that failed with the first seed
                that did, or what pytest has for a skip or a failure.
        """
        _check(item)
        names = inspect.signature(item.obj).parameters
        arguments = {name: item.funcargs[name] for name in names if name in item.funcargs}

        def worlds(function: Callable[..., None]) -> Callable[..., None]:
            @wraps(function)
            def in_worlds(*positional: Any, **named: Any) -> None:
                def program(*own: Any) -> None:
                    given = [_own(value, *own) for value in positional]
                    call = traced(function) if own[0].rank == self._looked_at else function
                    call(*given, **{name: _own(value, *own) for name, value in named.items()})

                self._run(item, program, plan, size)

            return in_worlds

        with limit(plan.timeout):
            if not getattr(item.obj, "is_hypothesis_test", False):
                worlds(item.obj)(**arguments)
                return
            handle = item.obj.hypothesis
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(handle, "inner_test", worlds(handle.inner_test))
                item.obj(**arguments)

    def _run(
        self, item: pytest.Item, program: Callable[[Any, Any], None], plan: Plan, size: int
    ) -> None:
        worlds: dict[int, World] = {}
        for seed in plan.seeds:
            world = worlds[seed] = World(program, plan.unreceived == "error")
            world.run(plan, size, seed)
            if world.out_of_time:
                break
        failed = tuple(seed for seed, world in worlds.items() if world.failures or world.stuck)
        if failed:
            self._fail(item, worlds, failed, size)
        self._pass(item, worlds, size)

    def _fail(
        self, item: pytest.Item, worlds: dict[int, World], failed: tuple[int, ...], size: int
    ) -> NoReturn:
        world = worlds[failed[0]]
        if world.failures:
            raised = world.failures[min(world.failures)]
        else:
            texts = [f"rank {rank}: {text}" for rank, text in world.stuck.items()]
            raised = pytest.fail.Exception("; ".join(texts), pytrace=False)
        self._stories[item] = Story(raised, failed[0], failed, len(worlds), world, size, "")
        raise raised

    def _pass(self, item: pytest.Item, worlds: dict[int, World], size: int) -> None:
        """No rank failed; say who skipped."""
        self._stories.pop(item, None)
        skips = [(rank, skip) for world in worlds.values() for rank, skip in world.skips.items()]
        if not skips:
            return
        if len(skips) == size * len(worlds):
            raise skips[0][1]
        note = f"skipped on {ranks_text(rank for rank, _ in skips)} of {size}"
        self._stories[item] = Story(None, 0, (), len(worlds), None, size, note)

    def _reports(self, item: pytest.Item, world: World) -> dict[int, Report]:
        """Of the ranks that did not come to a good end."""
        reports = {rank: self._raised(item, problem) for rank, problem in world.failures.items()}
        for rank, what in world.stuck.items():
            failure = stuck_failure(what, world.frames.get(rank, []), self._view)
            consequence = bool(world.failures) or world.at_fault not in (None, rank)
            reports[rank] = failed_report("call", failure, consequence=consequence)
        return reports

    def _raised(self, item: pytest.Item, problem: BaseException) -> Report:
        """The report pytest makes of an exception of a rank."""

        def again() -> None:
            raise problem

        call = pytest.CallInfo.from_call(again, when="call")
        report = pytest.TestReport.from_item_and_call(item, call)
        return packed(self._config, report)

    def complete(
        self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> pytest.TestReport:
        """The report of a test with its story: ranks and seed, and how to repeat it."""
        story = self._stories.pop(item, None)
        if story is None:
            return report
        told = packed(self._config, report)
        if story.world is None and report.passed:
            told["ompy_note"] = story.note
        elif story.world is not None and not report.passed:
            if call.excinfo is not None and call.excinfo.value is story.raised:
                merged = merge(self._reports(item, story.world), story.size)
                told["longrepr"] = with_prefix(merged["longrepr"], f"seed {story.seed}, ")
            told["sections"].append(("virtual world", self._how_to_repeat(item, story)))
        return revived(self._config, told)

    def _how_to_repeat(self, item: pytest.Item, story: Story) -> str:
        text = f"failed with seed {story.seed}"
        if story.tried > 1:
            seeds = ", ".join(map(str, story.failed[:SEEDS_SHOWN]))
            more = ", ..." if len(story.failed) > SEEDS_SHOWN else ""
            text += f" ({len(story.failed)} of {story.tried} seeds failed: {seeds}{more})"
        command = f"pytest {shlex.quote(item.nodeid)} --ompy-seed {story.seed}"
        assert story.world is not None, "it has failed"
        rank = min(story.world.failures or story.world.stuck)
        in_pdb = f"in a debugger:\n    {command} --ompy-pdb {rank}"
        return f"{text}; this one alone:\n    {command}\n{in_pdb}"


def _check(item: pytest.Function) -> None:
    """Fail a test that cannot run here: async, or with an MPI that knows no virtual ranks."""
    import ompy.MPI

    if inspect.iscoroutinefunction(item.obj):
        pytest.fail("a test in the virtual world cannot be async: write world='real'", False)
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
