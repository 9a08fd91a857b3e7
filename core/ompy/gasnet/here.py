"""GASNet of this interpreter's rank."""

# ruff: noqa: SLF001 - ranks are private to users, not to this package

from __future__ import annotations

import atexit
import sys
from _thread import get_ident
from typing import Final, NoReturn

from ompy.data.errors import ERR_OTHER, MPIError
from ompy.frameworks.conduit import Conduit, ThreadMode
from ompy.gasnet.life import Gasnet
from ompy.mca.errors import ComponentError, UsageError
from ompy.runtime.diagnosis.uncaught import end_job_on_exception
from ompy.runtime.ranks.conduit_selection import select_conduit
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.ranks.rank_start import leave, start


class _Ending(SystemExit):
    """What `sys.exit` raises in a rank.

    Python tells its exit hooks no code. But it drops what ends it before it calls them, when no
    frame runs any more; one that the program has caught is dropped by a frame. If somebody keeps
    it the job ends as with code 0: after the others had time to come.
    """

    def __del__(self) -> None:
        if sys._getframe().f_back is None and get_ident() == rank._owner:
            rank._ends_with(self.code)


def _exit(status: object = None, /) -> NoReturn:
    """As `sys.exit`."""
    raise _Ending(status)


class _Here:
    """Brings this process up as a rank, unless MPI has, and leaves it."""

    def __init__(self) -> None:
        self._process: RankProcess | None = None

    def find(self, mode: ThreadMode) -> Conduit:
        """The conduit of this process.

        Raises:
            MPIError: there is none.
        """
        process = self._process = start()
        atexit.register(rank.finish)
        sys.exit = _exit
        end_job_on_exception(process)
        process.others_waiting = rank.waiting
        process.other_calls = rank._calls_at_end
        try:
            return select_conduit(process, mode)
        except (ComponentError, UsageError) as problem:
            raise MPIError(ERR_OTHER, str(problem)) from problem

    def process(self) -> RankProcess:
        """The rank that this process is, after `find`."""
        assert self._process is not None, "init has made it one"
        return self._process

    def leave(self) -> None:
        """GASNet is over here."""
        if self._process is not None:
            leave(self._process)


_here: Final = _Here()
rank: Final = Gasnet(_here.find, _here.leave)


def process() -> RankProcess:
    """The rank that this process is, after `init`."""
    return _here.process()
