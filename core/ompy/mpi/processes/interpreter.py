"""`MPI.COMM_WORLD` in an interpreter that the ranks of a virtual world share.

`COMM_WORLD`, `COMM_SELF` and what `life` knows belong to the interpreter, that is to one rank.
In a virtual world each rank is a greenlet; here they change hands whenever another one runs.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import greenlet

from ompy.mpi.communicators.predefined_comms import self_of, world_of
from ompy.mpi.processes.life import COMM_SELF, COMM_WORLD, _life
from ompy.runtime.ranks.process import RankProcess

_SWITCHES: Final = frozenset(("switch", "throw"))


class _Identity(NamedTuple):
    """Whom the interpreter's MPI belongs to.

    Attributes:
        life: what `life` knows, by attribute.
        world: what COMM_WORLD refers to, or None.
        own: what COMM_SELF refers to, or None.
    """

    life: dict[str, Any]
    world: Any
    own: Any

    def assume(self) -> None:
        """Have the interpreter's MPI be this one."""
        _life.__dict__ = self.life
        COMM_WORLD._inner = self.world
        COMM_SELF._inner = self.own


class SharedInterpreter:
    """While it is entered, the interpreter's MPI is that of the rank whose greenlet runs.

    Enter it around `VirtualJob.run`; each rank's program calls `join` first. Outside the ranks
    all is as it was. A trace function of greenlet that was set before goes on being called.
    """

    def __init__(self) -> None:
        self._ranks: dict[greenlet.greenlet, _Identity] = {}
        self._outside: _Identity | None = None
        self._previous: Any = None

    def __enter__(self) -> Self:
        import ompy.MPI  # noqa: F401 - imported by a rank it would initialise MPI a second time

        self._outside = _Identity(_life.__dict__, COMM_WORLD._inner, COMM_SELF._inner)
        self._previous = greenlet.settrace(self._switched)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        greenlet.settrace(self._previous)
        assert self._outside is not None, "it was entered"
        self._outside.assume()
        self._ranks.clear()

    def join(self, process: RankProcess) -> None:
        """The running greenlet is this rank: from now on MPI is initialised in it."""
        assert self._outside is not None, "it was entered"
        world, own = both = world_of(process)._inner, self_of(process)._inner
        rank = {"states": both, "world": world.world, "finalized": False, "exit_status": 0}
        life = {**self._outside.life, **rank, "sessions": False}
        identity = _Identity(life, world, own)
        self._ranks[greenlet.getcurrent()] = identity
        identity.assume()

    def _switched(self, event: str, greenlets: Any) -> None:
        if event in _SWITCHES:
            identity = self._ranks.get(greenlets[1], self._outside)
            assert identity is not None, "it was entered"
            identity.assume()
        if self._previous is not None:
            self._previous(event, greenlets)
