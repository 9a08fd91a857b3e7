"""The program of the ranks of an explored test: a session of pytest that runs this one test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from ompy import MPI

from pytest_ompy.side import SIDE


class ExploredRank:
    """One rank's side.

    Attributes:
        raised: what the test has ended with, if it has failed.
    """

    def __init__(self) -> None:
        self.raised: BaseException | None = None

    def pytest_configure(self, config: pytest.Config) -> None:
        """Be this session's side."""
        config.stash[SIDE] = self

    def communicator(self) -> Any:
        """A communicator of all ranks."""
        comm = MPI.COMM_WORLD.Dup()
        comm.Set_name("comm")
        return comm

    def gasnet(self) -> Any:
        """There is none in a world that is explored."""
        pytest.fail("gasnet: only messages of MPI are explored", pytrace=False)

    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        """Keep what was raised."""
        if call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception):
            self.raised = self.raised or call.excinfo.value


def main() -> None:
    """Run the test; the rank ends with what it has raised."""
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [path for path in sys.path if path != here]  # its modules are no others' names
    side = ExploredRank()
    quiet = ["-s", "-p", "no:cacheprovider", "-p", "no:terminal"]
    plugin = [] if "pytest_ompy.plugin" in sys.modules else ["-p", "pytest_ompy.plugin"]
    code = pytest.main([*quiet, *plugin, *sys.argv[1:]], plugins=[side])
    if side.raised is not None:
        raise side.raised
    if code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        sys.exit(int(code))


main()
