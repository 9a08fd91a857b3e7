"""Buffered sends: the copies that are under way, and the memory the user lent for them.

The user's memory is accounted for, as MPI wants it, but not written to: a copy has memory of its
own for as long as the PML needs it.
"""

from __future__ import annotations

import _thread
from typing import Any, Final

from ompy.data.convertor import ContiguousConvertor, Convertor
from ompy.data.errors import ERR_BUFFER
from ompy.data.request import Request
from ompy.frameworks.pml import BUFFERED
from ompy.mpi.constants import BSEND_OVERHEAD
from ompy.mpi.errors import MPIException
from ompy.mpi.markers import BUFFER_AUTOMATIC
from ompy.mpi.state import CommState, World

UNLIMITED: Final = -1


class SendBuffer:
    """Memory lent for buffered sends.

    Attributes:
        lent: what the user attached.
        capacity: its bytes, or UNLIMITED.
    """

    __slots__ = ("_lock", "_under_way", "capacity", "lent")

    def __init__(self, lent: Any) -> None:
        self._lock = _thread.allocate_lock()
        self._under_way: list[tuple[Request, int]] = []
        if lent is BUFFER_AUTOMATIC or lent is None:
            self.lent: Any = BUFFER_AUTOMATIC
            self.capacity = UNLIMITED
            return
        from ompy.mpi.memory import buffer

        self.lent = lent if isinstance(lent, buffer) else buffer(lent)
        if self.lent.readonly:
            raise BufferError("message: cannot attach a read-only buffer")
        self.capacity = self.lent.nbytes

    def send(self, state: CommState, convertor: Convertor, target: int, tag: int) -> None:
        """Copy a message and send the copy.

        Raises:
            MPIError: ERR_BUFFER, there is no room for it; or the peer cannot be reached.
        """
        need = convertor.size + BSEND_OVERHEAD
        with self._lock:
            self._under_way = [entry for entry in self._under_way if not entry[0].complete]
            used = sum(size for _, size in self._under_way)
            if self.capacity != UNLIMITED and used + need > self.capacity:
                raise MPIException(
                    ERR_BUFFER,
                    f"a message of {convertor.size} bytes needs {need} bytes of the attached "
                    f"buffer; {used} of its {self.capacity} are in use: attach a larger one",
                )
            copy = memoryview(bytearray(convertor.size))
            convertor.pack(0, copy)
            sent = state.pml.isend(
                state.communicator, ContiguousConvertor(copy), target, tag, BUFFERED
            )
            self._under_way.append((sent, need))

    def flush(self, world: World) -> None:
        """Return when all messages have been sent."""
        for operation, _ in list(self._under_way):
            world.engine.wait(operation)


def attached(state: CommState) -> SendBuffer:
    """The memory for buffered sends in a communicator: its own, or else the rank's.

    Raises:
        MPIException: ERR_BUFFER, there is none.
    """
    found: SendBuffer | None = state.buffers or state.world.buffers
    if found is None:
        raise MPIException(
            ERR_BUFFER, "no buffer is attached for buffered sends: call MPI.Attach_buffer first"
        )
    return found


def attach(owner: CommState | World, lent: Any) -> None:
    """Lend memory for buffered sends to a communicator, or to the whole rank.

    Raises:
        MPIException: ERR_BUFFER, there is some already.
        BufferError: it cannot be written to.
    """
    if owner.buffers is not None:
        raise MPIException(ERR_BUFFER, "a buffer is attached already: detach it first")
    owner.buffers = SendBuffer(lent)


def detach(owner: CommState | World, world: World) -> Any:
    """Give the memory back when all messages in it have been sent; None if there is none."""
    held: SendBuffer | None = owner.buffers
    if held is None:
        return None
    held.flush(world)
    owner.buffers = None
    return held.lent


def flush(owner: CommState | World, world: World) -> None:
    """Return when all buffered messages have been sent."""
    if owner.buffers is not None:
        owner.buffers.flush(world)
