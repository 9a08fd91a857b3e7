"""The rank's side: a pytest session that runs the tests it is told.

It has the controller's own arguments, options and plug-ins, collects the modules with tests for
its pool, and hands every report to the controller.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

import pytest

from pytest_ompy.channel import Channel, GoneError, Message
from pytest_ompy.merge import kind_of
from pytest_ompy.serialised import packed
from pytest_ompy.side import SIDE
from pytest_ompy.unreceived import unreceived
from pytest_ompy.warned import pack_warning

CONTROLLER_GONE: Final = 1  # exit code nobody is left to read
_PROGRESS_S: Final = 0.001  # s; arbitrary: how long messages of others wait for a rank at the end

# options that choose tests, write files or start other processes: the controller has done it
_NEUTRAL: Final[dict[str, Any]] = {
    "keyword": "",
    "markexpr": "",
    "deselect": None,
    "lf": False,
    "failedfirst": False,
    "newfirst": False,
    "stepwise": False,
    "stepwise_skip": False,
    "collectonly": False,
    "maxfail": 0,
    "dist": "no",
    "distload": False,
    "loadgroup": False,
    "looponfail": False,
    "numprocesses": None,
    "maxprocesses": None,
    "tx": [],
}


class RankSession:
    """The plug-in that makes a pytest session the rank of a pool.

    Attributes:
        checked: it ends as a program does that the checker looks at: well.
        hurry: told to end without finalising MPI, which might wait for messages that never come.
    """

    def __init__(self, channel: Channel, start: Message) -> None:
        """Prepare.

        Args:
            channel: to the controller.
            start: what it said first.
        """
        self._channel = channel
        self._start = start
        self._problems: list[str] = []
        self._promised: pytest.Item | None = None
        self._comm: Any = None
        self._strict = True
        self._sound = True
        self._failed = False
        self.checked = False
        self.hurry = False

    # before the session

    @pytest.hookimpl(wrapper=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> Iterator[None]:
        """Make the controller's configuration a rank's."""
        for name, value in {**_NEUTRAL, **self._start["options"]}.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)
        config.stash[SIDE] = self
        config.args = self._start["modules"]
        # what plug-ins look for to leave summaries, caches and result files to the controller
        config.workerinput = self._start["workerinput"]  # type: ignore[attr-defined]
        config.workeroutput = {}  # type: ignore[attr-defined]
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """The terminal is the controller's."""
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter._tw._file = open(os.devnull, "w")  # noqa: SIM115, SLF001 - for good

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember what cannot be collected here, though the controller could."""
        if report.failed:
            self._problems.append(f"{report.nodeid}\n{report.longreprtext}")

    # the session

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run what the controller says until it has enough."""
        self._channel.send("ready", problems=self._problems)
        items = {item.nodeid: item for item in session.items}
        try:
            while (order := self._channel.receive())["what"] == "run":
                self._run(session, items, order)
                if order["once"] and self._sound and not self._failed:
                    self.checked = True
                    return True  # into Finalize, as a program: what others still want is told there
        except GoneError:
            os._exit(CONTROLLER_GONE)
        self.hurry = order["hurry"]
        return True

    def _run(self, session: pytest.Session, items: dict[str, pytest.Item], order: Message) -> None:
        item = _find(items, order["test"])
        if item is None:
            self._channel.send("unknown", count=len(items))
            return
        following = _find(items, order["next"]) if order["next"] else None
        if self._promised is not item:  # the controller has changed its mind about what follows
            session._setupstate.teardown_exact(item)  # noqa: SLF001 - as pytest's own runner
        self._promised = following
        self._strict = order["strict"]
        self._begin(item)
        try:
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        except pytest.exit.Exception as reason:
            self._channel.send("exit", reason=str(reason))
        self._end()

    def _begin(self, item: pytest.Item) -> None:
        """A fresh communicator, made before anything can fail on one rank alone."""
        from ompy import MPI

        self._sound = True
        self._failed = False
        self._comm = None
        if "comm" in getattr(item, "fixturenames", ()) and not MPI.Is_finalized():
            self._comm = MPI.COMM_WORLD.Dup()
            self._comm.Set_name("comm")

    def _end(self) -> None:
        from ompy import MPI

        if MPI.Is_finalized():
            self._sound = False
        elif self._comm is not None:
            self._comm.free()
        self._comm = None
        self._channel.send("done", sound=self._sound)

    def communicator(self) -> Any:
        """The communicator of the running test, for the fixture `comm`."""
        if self._comm is None:
            pytest.fail("MPI has been finalised: there can be no communicator", pytrace=False)
        return self._comm

    def gasnet(self) -> Any:
        """Nothing: this process is kept for other tests, and has GASNet once in its life."""
        pytest.fail(
            "gasnet is for world='virtual': a process has one segment and one table of handlers, "
            "and ranks are kept between tests. A program is run on processes by ompy-run",
            pytrace=False,
        )

    # a test

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """When the test itself has ended well on all ranks: look for what nobody received."""
        try:
            result = yield
        except pytest.skip.Exception:
            self._leave()
            raise
        if not getattr(item, "_excinfo", None):  # where pytest keeps what a TestCase raised
            self._leave()
        return result

    def _leave(self) -> None:
        from ompy import MPI

        self._channel.send("at end", finalized=MPI.Is_finalized())
        if not self._all_at_end():
            return
        found = unreceived([comm for comm in (self._comm, MPI.COMM_WORLD) if comm is not None])
        if found:
            self._sound = False
            if self._strict:
                pytest.fail(found, pytrace=False)

    def _all_at_end(self) -> bool:
        """Wait for the controller's word; what others still want of us goes on meanwhile."""
        from ompy import MPI

        while not self._channel.poll(_PROGRESS_S):
            if not MPI.Is_finalized():
                MPI.COMM_SELF.Iprobe()
        order = self._channel.receive()
        assert order["what"] == "verdict", order
        return bool(order["check"])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hand a report to the controller."""
        data = packed(self._config, report)
        self._failed |= kind_of(data) == "failed"
        self._channel.send("report", data=data)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the configuration: `pytest_runtest_logreport` is not given it."""
        self._config = session.config

    def pytest_warning_recorded(
        self, warning_message: Any, when: str, nodeid: str, location: Any
    ) -> None:
        """Hand over what a test warned of; the controller has collected for itself."""
        if when == "runtest":
            packed = pack_warning(warning_message)
            self._channel.send("warning", warning=packed, nodeid=nodeid, location=location)

    def pytest_leave_pdb(self) -> None:
        """The debugger has let the test go on."""
        self._channel.send("debugger left")

    def pytest_internalerror(self, excrepr: object) -> None:
        """Say what broke this session, on the way out."""
        self._channel.send("broken", text=str(excrepr))


def _find(items: dict[str, pytest.Item], test: str) -> pytest.Item | None:
    """An item by node id; pytest-xdist's `--dist loadgroup` adds the group to it."""
    return items.get(test) or items.get(test.rpartition("@")[0])
