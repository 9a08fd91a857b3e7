"""A rank as the controller sees it, and what came of a test on several."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final, NamedTuple

from pytest_ompy.channel import Channel, Registration
from pytest_ompy.merge import Report, kind_of
from pytest_ompy.stacks import STACK_SIGNAL, STACKS_END

_STACK_MAX: Final = 1 << 20  # bytes; arbitrary: hundreds of threads
_PHASES: Final = ("setup", "call", "teardown")


class Loss(NamedTuple):
    """Why a rank has no report of a phase.

    Attributes:
        kind: `hung`, `waiting` for one that hung, `died`, `ended` with the job after another had
            died, or `broken`: pytest itself could not go on.
        phase: it was in.
        text: its stack (hung), or what is known of its end.
        consequence: it would have gone on but for another rank.
    """

    kind: str
    phase: str
    text: str
    consequence: bool


class RemoteRank:
    """A rank, as the controller sees it.

    Attributes:
        number: in COMM_WORLD.
        channel: to it.
        reports: of the test that runs, by phase.
        at_end: it has run the test's own code and waits for the others.
        busy: it has not yet said that it is done.
        gone: its process has ended.
    """

    def __init__(self, registration: Registration) -> None:
        self.number = registration.rank
        self.channel: Channel = registration.channel
        self.reports: dict[str, Report] = {}
        self.at_end = False
        self.busy = False
        self.gone = False
        self._pid = registration.pid
        self._stacks = registration.stacks
        self._asked_from = 0

    @property
    def phase(self) -> str:
        """The phase it is in."""
        setup = self.reports.get("setup")
        if setup is None:
            return "setup"
        return "call" if setup["outcome"] == "passed" and "call" not in self.reports else "teardown"

    @property
    def failed(self) -> bool:
        """Whether a phase has failed, be it as expected."""
        return any(kind_of(report) in {"failed", "xfailed"} for report in self.reports.values())

    def begin(self) -> None:
        """A test begins."""
        self.reports = {}
        self.at_end = False
        self.busy = True

    def ask_for_stack(self) -> None:
        """Have it write its stack; `stack` reads it."""
        self._asked_from = os.fstat(self._stacks).st_size
        with suppress(ProcessLookupError):
            os.kill(self._pid, STACK_SIGNAL)

    @property
    def has_answered(self) -> bool:
        """Whether its stack is complete."""
        return self.stack().endswith(STACKS_END)

    def stack(self) -> str:
        """What it has written since it was asked."""
        return os.pread(self._stacks, _STACK_MAX, self._asked_from).decode(errors="replace")

    def close(self) -> None:
        """Forget its channel and its file."""
        self.channel.close()
        os.close(self._stacks)


class TestRun:
    """What came of one test on a pool.

    Attributes:
        reports: by phase, then by rank.
        losses: of ranks that never finished.
        exit: what `pytest.exit` said on a rank, or None.
        sound: the pool can run another test.
    """

    __test__ = False

    def __init__(self) -> None:
        self.reports: dict[str, dict[int, Report]] = {phase: {} for phase in _PHASES}
        self.losses: dict[int, Loss] = {}
        self.exit: str | None = None
        self.sound = True
