"""What all parts of the communicator classes build on."""

from __future__ import annotations

from typing import Any, ClassVar

from ompy.frameworks.call_kinds import KINDS
from ompy.frameworks.call_order import detail_of
from ompy.mpi.attributes import Attributed
from ompy.mpi.state import CommState, null_communicator


class CommBase(Attributed):
    """A handle of a communicator."""

    __slots__ = ()
    _kind: ClassVar[str] = "Comm"

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, CommState)

    def _state(self) -> CommState:
        """What the handle refers to.

        Raises:
            MPIException: ERR_COMM, it is null.
        """
        state: CommState | None = self._inner
        if state is None:
            raise null_communicator()
        return state

    def _enter(self, name: str, root: Any = 0) -> CommState:
        """What the handle refers to, for a call that all members make together.

        Args:
            name: of the call, as `call_kinds.py` has it.
            root: as the user gave it.

        Raises:
            MPIException: ERR_COMM, it is null.
        """
        state = self._state()
        state.communicator.order.begin(KINDS[name], detail_of(root))
        return state

    def _attributes(self) -> CommState:
        return self._state()
