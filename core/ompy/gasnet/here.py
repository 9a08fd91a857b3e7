"""GASNet of this interpreter's rank."""

from __future__ import annotations

import atexit
from typing import Final

from ompy.data.errors import ERR_OTHER, MPIError
from ompy.frameworks.conduit import Conduit, ThreadMode
from ompy.gasnet.life import Gasnet
from ompy.mca.errors import ComponentError, UsageError
from ompy.runtime.conduit_selection import select_conduit
from ompy.runtime.guard import guard
from ompy.runtime.process import RankProcess
from ompy.runtime.world import leave, start


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
        guard(process)
        process.others_waiting = rank.waiting
        try:
            return select_conduit(process, mode)
        except (ComponentError, UsageError) as problem:
            raise MPIError(ERR_OTHER, str(problem)) from problem

    def leave(self) -> None:
        """GASNet is over here."""
        if self._process is not None:
            leave(self._process)


_here: Final = _Here()
rank: Final = Gasnet(_here.find, _here.leave)
