"""Messages of collective calls on objects: under the call's own tag, of any size.

Waiting for another member, a rank asks which call that is in when it takes long.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ompy.compiled import DECLARING, ccall, cfunc
from ompy.data.convertor import GrowingConvertor
from ompy.data.errors import MPIError
from ompy.data.request import Request as Operation
from ompy.frameworks.collectives.patience import PATIENCE, inquire, only
from ompy.frameworks.pml import STANDARD
from ompy.mpi.buffers.objects import Pieces, convertor_of
from ompy.mpi.state import CommState

if DECLARING:
    from ompy.data.convertor import Convertor
    from ompy.data.request import Request as Operation
    from ompy.engine.base import Engine
    from ompy.frameworks.communicator import Communicator

Posted = tuple[Operation, GrowingConvertor, int]  # a receive, its room, the source
Sent = tuple[Operation, int]  # a send, the target


@cfunc
def _wait_for(state: CommState, operation: Operation, rank: int) -> None:
    """Wait for a message from or to a member."""
    if not operation.complete:
        communicator: Communicator = state.communicator
        engine: Engine = communicator.context.engine
        if not engine.wait(operation, PATIENCE):
            inquire(communicator, operation, partial(only, rank))
    if operation.error:
        raise MPIError(operation.error, operation.detail)


@ccall
def begin_message(state: CommState, pieces: Pieces, target: int) -> Sent:
    """Begin to send an object to a member."""
    comm: Communicator = state.communicator
    convertor: Convertor = convertor_of(pieces)
    return state.pml.isend(comm, convertor, target, comm.order.tag(), STANDARD), target


@ccall
def send_message(state: CommState, pieces: Pieces, target: int) -> None:
    """Send an object to a member.

    Raises:
        MPIError: it failed.
    """
    comm: Communicator = state.communicator
    convertor: Convertor = convertor_of(pieces)
    _wait_for(state, state.pml.isend_waited(comm, convertor, target, comm.order.tag()), target)


@ccall
def post_receive(state: CommState, source: int) -> Posted:
    """Begin to receive an object of a member."""
    comm: Communicator = state.communicator
    convertor: GrowingConvertor = GrowingConvertor()
    return state.pml.irecv(comm, convertor, source, comm.order.tag()), convertor, source


@ccall
def finish_receive(state: CommState, posted: Posted) -> Any:
    """Wait for a receive: the memory that the message is in.

    Raises:
        MPIError: it failed.
    """
    operation: Operation
    convertor: GrowingConvertor
    operation, convertor, source = posted
    _wait_for(state, operation, source)
    return convertor.owner()


@ccall
def receive_message(state: CommState, source: int) -> Any:
    """Receive an object of a member: the memory that the message is in.

    Raises:
        MPIError: it failed.
    """
    comm: Communicator = state.communicator
    convertor: GrowingConvertor = GrowingConvertor()
    _wait_for(state, state.pml.irecv(comm, convertor, source, comm.order.tag()), source)
    return convertor.owner()


@ccall
def wait_all(state: CommState, sent: Sequence[Sent]) -> None:
    """Wait until objects are sent.

    Raises:
        MPIError: one could not be.
    """
    operation: Operation
    for operation, target in sent:
        _wait_for(state, operation, target)
