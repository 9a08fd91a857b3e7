"""The controller's side: gives marked tests to pools, makes one report of the ranks' reports."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator, Sequence
from copy import deepcopy
from itertools import islice
from typing import Any, Final, NamedTuple

import pytest

from pytest_ompy.alarm import no_limit
from pytest_ompy.channel import Message
from pytest_ompy.checked import with_findings
from pytest_ompy.debugger import CLASS, Console
from pytest_ompy.explored import explore_test
from pytest_ompy.losses import View, report_of
from pytest_ompy.merge import Report, merge, text_failure
from pytest_ompy.plan import SIZE, Plan, PlanError, grace_of, plan_of
from pytest_ompy.pool import Limits, Pool, PoolError, PoolKey
from pytest_ompy.remote_rank import TestRun
from pytest_ompy.serialised import packed, revived
from pytest_ompy.virtual import LaterCommunicator, LaterGasnet, VirtualRuns
from pytest_ompy.warned import unpack_warning

END_POLL_S: Final = 0.05  # s; arbitrary: how often a pool that does not end is looked at


class Assignment(NamedTuple):
    """A test and what is to be done with it."""

    plan: Plan
    key: PoolKey

    def on_pool(self, key: PoolKey) -> bool:
        """Whether it runs on this pool."""
        return self.plan.world == "real" and self.key == key


def size_of(item: pytest.Item, plan: Plan) -> int:
    """The number of ranks of a test: of several, the one this item is parametrised with."""
    callspec = getattr(item, "callspec", None)
    size = callspec.params.get(SIZE) if callspec is not None else None
    return plan.sizes[0] if size is None else int(size)


class Controller:
    """The plug-in of the session that the user has started."""

    def __init__(self, config: pytest.Config, items: Sequence[pytest.Item]) -> None:
        """Note which tests are for which pool.

        Args:
            config: of the session.
            items: what has been collected, in the order it will be run in.

        Raises:
            UsageError: a marker asks for something that its test cannot have.
        """
        self._config = config
        self._grace = grace_of(config)
        self._pooled = not config.getoption("ompy_no_pool")
        self._assignments: dict[pytest.Item, Assignment] = {}
        self._order = {item: number for number, item in enumerate(items)}
        self._modules: dict[PoolKey, list[str]] = {}
        self._pools: dict[PoolKey, Pool] = {}
        self._ending: list[Pool] = []
        self._exit: str | None = None
        self._started = 0
        self._sees_all = not hasattr(config, "workerinput")  # a worker of pytest-xdist does not
        self._virtual = VirtualRuns(config)
        self._warned: set[str] = set()
        self._console = Console(config)
        for item in items:
            self._assign(item)

    def _assign(self, item: pytest.Item) -> None:
        try:
            plan = plan_of(item, self._config)
        except PlanError as problem:
            raise pytest.UsageError(f"{item.nodeid}: {problem}") from None
        if plan is None:
            return
        self._check(item, plan)
        key = PoolKey(size_of(item, plan), plan.mca, plan.check)
        self._assignments[item] = Assignment(plan, key)
        if plan.world == "real":
            modules = self._modules.setdefault(key, [])
            if str(item.path) not in modules:
                modules.append(str(item.path))

    def _check(self, item: pytest.Item, plan: Plan) -> None:
        """What only functions can have."""
        plain = isinstance(item, pytest.Function) and not hasattr(item, "addFailure")
        if len(plan.sizes) > 1 and not plain:
            raise pytest.UsageError(f"{item.nodeid}: of this kind of test n has to be one number")
        if plan.world == "virtual" and not plain:
            raise pytest.UsageError(f"{item.nodeid}: the virtual world runs test functions only")

    def communicator(self) -> Any:
        """What the fixture `comm` is here: only a test in the virtual world asks for it."""
        return LaterCommunicator()

    def gasnet(self) -> Any:
        """The same for the fixture `gasnet`."""
        return LaterGasnet()

    # running

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run a marked test on its pool, where pytest would run it in this process."""
        assignment = self._assignments.get(item)
        if assignment is None or assignment.plan.world != "real":
            return None
        if item.get_closest_marker("skip") is not None:
            return None  # pytest skips it before anything of it runs
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports(item, assignment, nextitem):
            item.ihook.pytest_runtest_logreport(report=revived(self._config, report))
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if self._exit is not None:
            pytest.exit(self._exit)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Run a marked test in the virtual world."""
        assignment = self._assignments.get(pyfuncitem)
        if assignment is None:
            return None
        if assignment.plan.explore:
            explore_test(pyfuncitem, assignment.plan, assignment.key.size)
            return True
        self._virtual.run(pyfuncitem, assignment.plan, assignment.key.size)
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Say in the report of a virtual test which seed and which ranks it was."""
        report = yield
        if call.when == "call" and item in self._assignments:
            report = self._virtual.complete(item, call, report)
        return report

    def _reports(
        self, item: pytest.Item, assignment: Assignment, nextitem: pytest.Item | None
    ) -> list[Report]:
        """One report for each phase of a test that there is something to say of."""
        began = time.time()
        call: pytest.CallInfo[list[Report]] = pytest.CallInfo.from_call(
            lambda: self._on_pool(item, assignment, nextitem),
            when="call",
            reraise=(pytest.exit.Exception, KeyboardInterrupt),
        )
        if call.excinfo is None:
            return call.result
        # of this process: a pool that cannot be started, or another plug-in's timeout
        pool = self._pools.pop(assignment.key, None)
        if pool is not None:
            pool.kill()
        if isinstance(call.excinfo.value, PoolError):
            return [self._own_failure(item, str(call.excinfo.value), began)]
        report = pytest.TestReport.from_item_and_call(item, call)  # type: ignore[arg-type]
        return [packed(self._config, report)]

    def _on_pool(
        self, item: pytest.Item, assignment: Assignment, nextitem: pytest.Item | None
    ) -> list[Report]:
        plan, key = assignment
        began = time.time()
        pool = self._pool(key, item)
        started_in = time.time() - began
        following = None if plan.check else self._following(item, key, nextitem)
        run = pool.run(
            item.nodeid,
            following.nodeid if following is not None else None,
            Limits(plan.timeout, self._grace),
            strict=plan.unreceived == "error",
            listener=self,
        )
        self._exit = run.exit
        if plan.check:
            found = self._pools.pop(key).findings(hung=_has_hung(run))
            return with_findings(self._merged(item, plan, run, key.size, started_in), found)
        self._retire(key, run, last=following is None and (nextitem is None or self._sees_all))
        return self._merged(item, plan, run, key.size, started_in)

    def _following(
        self, item: pytest.Item, key: PoolKey, nextitem: pytest.Item | None
    ) -> pytest.Item | None:
        """The next test of this pool as far as one can know: fixtures it shares are kept."""
        if nextitem is None or not self._pooled:
            return None
        for other in islice(item.session.items, self._order[nextitem], None):
            assignment = self._assignments.get(other)
            if assignment is not None and assignment.on_pool(key):
                return other
        return None

    def _merged(
        self, item: pytest.Item, plan: Plan, run: TestRun, size: int, started_in: float
    ) -> list[Report]:
        """The reports of the phases, with something for the ranks that have none."""
        directory = str(self._config.invocation_params.dir)
        view = View(directory, full=bool(self._config.getoption("fulltrace", False)))
        for rank, loss in run.losses.items():
            run.reports[loss.phase][rank] = report_of(loss, plan.timeout, view)
        merged = []
        for phase, reports in run.reports.items():
            if not reports:
                continue
            report = {**merge(reports, size), "when": phase, **self._identity(item)}
            merged.append(report)
        if not merged:  # pytest.exit on all ranks, before anything else
            return []
        setup, *others = merged
        setup["duration"] += started_in
        if setup["outcome"] == "failed":  # else it would count as passed, too
            others = [report for report in others if report["outcome"] != "passed"]
        return [setup, *others]

    def _identity(self, item: pytest.Item) -> Report:
        return {
            "$report_type": "TestReport",
            "nodeid": item.nodeid,
            "location": item.location,
            "keywords": dict.fromkeys(item.keywords, 1),
        }

    def _own_failure(self, item: pytest.Item, text: str, began: float) -> Report:
        """A test that could not be run."""
        now = time.time()
        return {
            **self._identity(item),
            "when": "setup",
            "outcome": "failed",
            "longrepr": text_failure(text),
            "sections": [],
            "user_properties": [],
            "start": began,
            "stop": now,
            "duration": now - began,
        }

    # while a test runs (pool.Listener)

    def debugger_entered(self, rank: int, report: Report | None) -> None:
        """Give the terminal to a rank's debugger."""
        before = revived(self._config, deepcopy(report)).longreprtext if report is not None else ""
        self._console.open(rank, before)

    def debugger_asks(self, text: str) -> str:
        """Ask the user for a rank's debugger."""
        return self._console.ask(text)

    def warned(self, message: Message) -> None:
        """Show what a rank warned of; what all of them warn of, once."""
        text = repr(message)
        if text not in self._warned:
            self._warned.add(text)
            self._config.hook.pytest_warning_recorded.call_historic(
                kwargs={
                    "warning_message": unpack_warning(message["warning"]),
                    "when": "runtest",
                    "nodeid": message["nodeid"],
                    "location": message["location"],
                }
            )

    # pools

    def _pool(self, key: PoolKey, item: pytest.Item) -> Pool:
        """The pool for a test, started if there is none."""
        self._ending = [pool for pool in self._ending if not pool.ended()]
        pool = self._pools.get(key)
        if pool is not None and not pool.alive():
            why = self._pools.pop(key).how_it_ended().partition("\n")[0]
            pool.kill()
            item.warn(pytest.PytestWarning(f"the ranks ended between two tests: {why}"))
            pool = None
        if pool is None:
            pool = self._pools[key] = self._start(key)
            pool.wait_until_ready()
        return pool

    def _start(self, key: PoolKey) -> Pool:
        if "OMPY_RANK" in os.environ:
            raise PoolError(
                "pytest runs as a rank of an ompy-run job. Start it without ompy-run: the plug-in "
                "starts the ranks of each test itself"
            )
        self._started += 1
        number = self._started
        directory = str(self._config.invocation_params.dir)
        echo = self._config.getoption("capture", "fd") in {"no", "tee-sys"}
        return Pool(key, lambda rank: self._first_words(key, number, rank), directory, echo=echo)

    def _first_words(self, key: PoolKey, number: int, rank: int) -> Message:
        """What a rank has to know to set up its session."""
        config = self._config
        manager = config.pluginmanager
        arguments = [str(argument) for argument in config.invocation_params.args]
        if manager.hasplugin("pytest_cov"):
            arguments.append("--no-cov")  # it would wait for a controller of pytest-xdist
        node = _Node(config, f"ompy{number}-{rank}")
        if hasattr(config.hook, "pytest_configure_node"):
            but = [manager.get_plugin("_cov")]
            manager.subset_hook_caller("pytest_configure_node", but)(node=node)
        terminal = manager.hasplugin("terminalreporter")
        markup = terminal and config.get_terminal_writer().hasmarkup
        temporary: Any = getattr(config, "_tmp_path_factory", None)
        options: dict[str, Any] = {
            "color": "yes" if markup else "no",
            "usepdb": config.getoption("usepdb", False),
            "usepdb_cls": CLASS,
        }
        if temporary is not None:
            options["basetemp"] = str(temporary.getbasetemp() / f"ompy{number}-rank{rank}")
        return {
            "arguments": arguments,
            "path": [entry or os.getcwd() for entry in sys.path],
            "modules": self._modules[key],
            "options": options,
            "workerinput": node.workerinput,
        }

    def _retire(self, key: PoolKey, run: TestRun, *, last: bool) -> None:
        """End a pool that is of no more use."""
        pool = self._pools[key]
        if run.sound and self._pooled and not last:
            return
        del self._pools[key]
        if _has_hung(run):
            pool.kill()
        else:
            pool.begin_end(hurry=not run.sound)
            self._ending.append(pool)

    def pytest_enter_pdb(self) -> None:
        """A virtual test in the debugger has all the time it wants."""
        no_limit()

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """End all pools when the last test has run: before others sum up what was measured."""
        result = yield
        self.pytest_sessionfinish()
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """End all pools, and wait until they have gone."""
        for pool in self._pools.values():
            pool.begin_end(hurry=False)
        self._ending += self._pools.values()
        self._pools.clear()
        while self._ending:
            self._ending = [pool for pool in self._ending if not pool.ended(END_POLL_S)]

    def pytest_keyboard_interrupt(self) -> None:
        """Ctrl-C: end all processes at once."""
        for pool in [*self._pools.values(), *self._ending]:
            pool.kill()
        self._pools.clear()
        self._ending.clear()

    def pytest_unconfigure(self) -> None:
        """Whatever has happened: leave no process behind."""
        self.pytest_keyboard_interrupt()


def _has_hung(run: TestRun) -> bool:
    """Whether ranks of a test do not come to the end by themselves."""
    return run.exit is not None or any(loss.kind != "broken" for loss in run.losses.values())


class _Node:
    """What the hook `pytest_configure_node` of pytest-xdist is called with for a worker.

    Plug-ins use it to tell their own part in the worker what it needs to know.
    """

    def __init__(self, config: pytest.Config, name: str) -> None:
        own: dict[str, Any] = getattr(config, "workerinput", {})
        self.config = config
        self.gateway = self
        self.id = name
        self.workerinput: dict[str, Any] = {
            "workerid": own.get("workerid", "master"),
            "workercount": own.get("workercount", 1),
            "testrunuid": own.get("testrunuid", name),
            "mainargv": sys.argv,
            # pytest-randomly wants it of every worker, but tells it by pytest-xdist's hook only
            "randomly_seed": config.getoption("randomly_seed", None),
        }
