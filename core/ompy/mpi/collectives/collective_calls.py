"""Collective calls on buffers: what a call's arguments say, as coll wants to hear it.

Blocking, nonblocking and persistent calls of one name read their arguments alike.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from ompy import raw
from ompy.compiled import ccall, cclass, cfunc, recycled
from ompy.data.constants import PROC_NULL, ROOT
from ompy.data.errors import ERR_BUFFER, ERR_OTHER, MPIError
from ompy.data.layout import BYTES
from ompy.data.message import Blocks, Message, equal_blocks, parted
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.frameworks.collectives.call_order import detail_of, name_of
from ompy.frameworks.collectives.patience import abandon
from ompy.mpi.buffers.common_forms import fits, plain_or_derived, says_in_place
from ompy.mpi.buffers.markers import InPlaceType
from ompy.mpi.buffers.spec import (
    even_blocks,
    message,
    plain_vector_blocks,
    typed_blocks,
    vector_blocks,
)
from ompy.mpi.point_to_point.peers import check_root, is_root
from ompy.mpi.state import CommState

NO_MESSAGE: Final = Message(memoryview(bytearray()), 0, 0, BYTES)
BARRIER: Final[int] = KINDS["Barrier"]
BCAST: Final[int] = KINDS["Bcast"]
GATHER: Final[int] = KINDS["Gather"]
GATHERV: Final[int] = KINDS["Gatherv"]
SCATTER: Final[int] = KINDS["Scatter"]
SCATTERV: Final[int] = KINDS["Scatterv"]
ALLGATHER: Final[int] = KINDS["Allgather"]
ALLGATHERV: Final[int] = KINDS["Allgatherv"]
ALLTOALL: Final[int] = KINDS["Alltoall"]
ALLTOALLV: Final[int] = KINDS["Alltoallv"]
ALLTOALLW: Final[int] = KINDS["Alltoallw"]


@recycled
@cclass
class Call:
    """A call whose arguments have been read.

    Attributes:
        comm: whose.
        operation: one of `ompy.frameworks.coll.OPERATIONS`.
        arguments: of that operation.
    """

    comm: CommState
    operation: str
    arguments: tuple[Any, ...]
    __slots__ = tuple(__annotations__)


@ccall
def call_of(comm: CommState, operation: str, arguments: tuple[Any, ...] = ()) -> Call:
    """A call, made without a constructor's cost."""
    made: Call = Call.__new__(Call)
    made.comm = comm
    made.operation = operation
    made.arguments = arguments
    return made


@ccall
def in_place(spec: Any) -> bool:
    """Whether the data are in the other buffer already; None says so too.

    The common forms alone: `says_in_place` knows those with a datatype.
    """
    return spec is None or type(spec) is InPlaceType


@ccall
def single(spec: Any, writable: bool) -> Message:
    """The message of a specification, whatever its datatype."""
    found: Message | None = plain_or_derived(spec, writable)
    return message(spec, writable).message if found is None else found


@ccall
def one(spec: Any, writable: bool) -> Message | None:
    """A message; None for in place."""
    return None if says_in_place(spec) else single(spec, writable)


@ccall
def blocks_of(spec: Any, writable: bool, ranks: int, parse: Callable[..., Any]) -> Blocks:
    """Blocks; `parse` reads what has no common form."""
    found: Blocks | None = None
    if parse is vector_blocks:
        found = plain_vector_blocks(spec, writable, ranks)
    elif parse is even_blocks and ranks:
        found = _plain_blocks(spec, writable, ranks)
    if found is None:
        found = parse(spec, writable, ranks).blocks
    return found


@ccall
def many(spec: Any, writable: bool, ranks: int, parse: Callable[..., Any]) -> Blocks | None:
    """Blocks; None for in place."""
    if says_in_place(spec):
        return None
    return blocks_of(spec, writable, ranks, parse)


# --- the common calls, straight; false means that they are for the others below


@ccall
def barrier(state: CommState) -> None:
    """Wait for all members.

    Raises:
        MPIException: it failed.
    """
    state.communicator.order.begin(BARRIER, 0)
    try:
        state.collectives().barrier()
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__


@ccall
def broadcast(state: CommState, buf: Any, root: Any) -> bool:
    """Broadcast a contiguous buffer of numbers.

    Raises:
        MPIException: it failed.
    """
    state.communicator.order.begin(BCAST, detail_of(root))
    if type(root) is not int or not 0 <= root < state.size:
        return False
    both: Message | None = plain_or_derived(buf, root != state.communicator.rank)
    if both is None:
        return False
    try:
        state.collectives().bcast(both, root)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    return True


@cfunc
def _plain_blocks(buffer: Any, writable: bool, ranks: int) -> Blocks | None:
    """Equal parts of a contiguous buffer, or None; a count is of one part."""
    found: Message | None = plain_or_derived(buffer, writable)
    if found is None:
        return None
    if not isinstance(buffer, (list, tuple)) or len(buffer) == 2:
        return parted(found, ranks)
    room: int = raw.size(found.memory)
    if not fits(found.layout, found.count * ranks, found.origin, room):
        return None
    return equal_blocks(found.memory, found.origin, found.count, found.layout, ranks)


@cfunc
def _blocks(buffer: Any, writable: bool, ranks: int, vector: bool) -> Blocks | None:
    """Parts of a buffer of a common form, equal or with counts; None of any other."""
    if vector:
        return plain_vector_blocks(buffer, writable, ranks)
    return _plain_blocks(buffer, writable, ranks)


@ccall
def gathered(state: CommState, sendbuf: Any, recvbuf: Any, root: Any, vector: bool) -> bool:
    """Gather contiguous buffers of numbers; `vector`: of any size each.

    Raises:
        MPIException: it failed.
    """
    state.communicator.order.begin(GATHERV if vector else GATHER, detail_of(root))
    if type(root) is not int or not 0 <= root < state.size:
        return False
    send: Message | None = None
    receive: Blocks | None = None
    if state.communicator.rank == root:
        receive = _blocks(recvbuf, True, state.size, vector)
        if receive is None:
            return False
    if receive is None or not in_place(sendbuf):
        send = plain_or_derived(sendbuf, False)
        if send is None or (receive is not None and not vector and not receive.fits(send)):
            return False
    try:
        state.collectives().gather(send, receive, root)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    return True


@ccall
def scattered(state: CommState, sendbuf: Any, recvbuf: Any, root: Any, vector: bool) -> bool:
    """Scatter a contiguous buffer of numbers; `vector`: in parts of any size.

    Raises:
        MPIException: it failed.
    """
    state.communicator.order.begin(SCATTERV if vector else SCATTER, detail_of(root))
    if type(root) is not int or not 0 <= root < state.size:
        return False
    send: Blocks | None = None
    receive: Message | None = None
    if state.communicator.rank == root:
        send = _blocks(sendbuf, False, state.size, vector)
        if send is None:
            return False
    if send is None or not in_place(recvbuf):
        receive = plain_or_derived(recvbuf, True)
        if receive is None or (send is not None and not vector and not send.fits(receive)):
            return False
    try:
        state.collectives().scatter(send, receive, root)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    return True


@ccall
def allgathered(state: CommState, sendbuf: Any, recvbuf: Any, vector: bool) -> bool:
    """Gather contiguous buffers of numbers everywhere; `vector`: of any size each.

    Raises:
        MPIException: it failed.
    """
    state.communicator.order.begin(ALLGATHERV if vector else ALLGATHER, 0)
    receive: Blocks | None = _blocks(recvbuf, True, state.size, vector)
    if receive is None:
        return False
    send: Message | None = None
    if not in_place(sendbuf):
        send = plain_or_derived(sendbuf, False)
        if send is None or not (vector or receive.fits(send)):
            return False
    try:
        state.collectives().allgather(send, receive)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    return True


@ccall
def exchanged(state: CommState, sendbuf: Any, recvbuf: Any, vector: bool) -> bool:
    """Send equal parts of a contiguous buffer of numbers to all; `vector`: parts of any size.

    Raises:
        MPIException: it failed.
    """
    state.communicator.order.begin(ALLTOALLV if vector else ALLTOALL, 0)
    receive: Blocks | None = _blocks(recvbuf, True, state.size, vector)
    if receive is None:
        return False
    if vector:  # equal blocks here say nothing about the other members'
        receive.regular = False
    send: Blocks | None = None
    if not in_place(sendbuf):
        send = _blocks(sendbuf, False, state.size, vector)
        if send is None:
            return False
    try:
        state.collectives().alltoall(send, receive)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    return True


@ccall
def exchanged_typed(state: CommState, sendbuf: Any, recvbuf: Any) -> None:
    """Send parts of any size and datatype to all.

    Raises:
        MPIException: it failed.
    """
    state.communicator.order.begin(ALLTOALLW, 0)
    try:
        send: Blocks | None = _typed_to_send(state, sendbuf)
        receive: Blocks = typed_blocks(recvbuf, True, state.size)
    except Exception as problem:
        refuse(state, problem)
        raise
    try:
        state.collectives().alltoall(send, receive)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__


@ccall
def passed_along(
    state: CommState, sendbuf: Any, recvbuf: Any, edges: Any, same: bool, vector: bool
) -> bool:
    """Send contiguous buffers of numbers along edges, in a call that has begun.

    Args:
        state: of the communicator.
        sendbuf: what is sent.
        recvbuf: room for a part from each edge.
        edges: of this member.
        same: all of it is sent along each edge; else a part.
        vector: parts are of any size.

    Raises:
        MPIException: it failed.
    """
    receive: Blocks | None = None
    if edges.sources and edges.targets:
        receive = _blocks(recvbuf, True, len(edges.sources), vector)
    if receive is None:
        return False
    send: Any = plain_or_derived(sendbuf, False) if same else None
    if not same:
        send = _blocks(sendbuf, False, len(edges.targets), vector)
    if send is None:
        return False
    try:
        if same:
            state.collectives().neighbor_allgather(send, receive, edges)
        else:
            state.collectives().neighbor_alltoall(send, receive, edges)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    return True


# --- any


def refuse(state: CommState, problem: Exception) -> None:
    """What this member gave to a call that it has begun is wrong: tell the others.

    Who waits for messages hears of it, and what the others do in memory says so.
    """
    communicator, order = state.communicator, state.communicator.order
    # a class that is about arguments would say of theirs that they are wrong
    abandon(communicator, order.tag(), MPIError(ERR_OTHER, str(problem)))
    if name_of(order.word).endswith("_init"):
        order.keep()  # the others may start it much later, and ask
    with suppress(MPIError):  # the call has failed here anyhow
        state.collectives().take_no_part()


@ccall
def bcast(state: CommState, buf: Any, root: Any) -> Call:
    """The call of a broadcast."""
    try:
        check_root(state, root)
        if root == PROC_NULL:
            return call_of(state, "bcast", (NO_MESSAGE, root))
        both = single(buf, not is_root(state, root))
        return call_of(state, "bcast", (both, root))
    except Exception as problem:
        refuse(state, problem)
        raise


@ccall
def gather(
    state: CommState, sendbuf: Any, recvbuf: Any, root: Any, parse: Callable[..., Any]
) -> Call:
    """The call of a gather; `parse` reads the specification of the root's buffer."""
    try:
        check_root(state, root)
        send = receive = None
        if is_root(state, root):
            receive = blocks_of(recvbuf, True, state.size, parse)
            send = None if root == ROOT else one(sendbuf, False)
        elif root != PROC_NULL:
            send = single(sendbuf, False)
        return call_of(state, "gather", (send, receive, root))
    except Exception as problem:
        refuse(state, problem)
        raise


@ccall
def scatter(
    state: CommState, sendbuf: Any, recvbuf: Any, root: Any, parse: Callable[..., Any]
) -> Call:
    """The call of a scatter; `parse` reads the specification of the root's buffer."""
    try:
        check_root(state, root)
        send = receive = None
        if is_root(state, root):
            send = blocks_of(sendbuf, False, state.size, parse)
            receive = None if root == ROOT else one(recvbuf, True)
        elif root != PROC_NULL:
            receive = single(recvbuf, True)
        return call_of(state, "scatter", (send, receive, root))
    except Exception as problem:
        refuse(state, problem)
        raise


@ccall
def allgather(state: CommState, sendbuf: Any, recvbuf: Any, parse: Callable[..., Any]) -> Call:
    """The call of an allgather."""
    try:
        check_in_place(state, sendbuf)
        receive = blocks_of(recvbuf, True, state.size, parse)
        return call_of(state, "allgather", (one(sendbuf, False), receive))
    except Exception as problem:
        refuse(state, problem)
        raise


@ccall
def alltoall(state: CommState, sendbuf: Any, recvbuf: Any, parse: Callable[..., Any]) -> Call:
    """The call of an alltoall."""
    try:
        check_in_place(state, sendbuf)
        send = many(sendbuf, False, state.size, parse)
        receive = blocks_of(recvbuf, True, state.size, parse)
        if parse is vector_blocks:  # equal blocks here say nothing about the other members'
            receive.regular = False
        return call_of(state, "alltoall", (send, receive))
    except Exception as problem:
        refuse(state, problem)
        raise


@ccall
def alltoallw(state: CommState, sendbuf: Any, recvbuf: Any) -> Call:
    """The call of an alltoall with a datatype for each block."""
    try:
        send: Blocks | None = _typed_to_send(state, sendbuf)
        return call_of(state, "alltoall", (send, typed_blocks(recvbuf, True, state.size)))
    except Exception as problem:
        refuse(state, problem)
        raise


@cfunc
def _typed_to_send(state: CommState, sendbuf: Any) -> Blocks | None:
    """Parts with a datatype each; None for in place."""
    check_in_place(state, sendbuf)
    return None if says_in_place(sendbuf) else typed_blocks(sendbuf, False, state.size)


@ccall
def check_in_place(state: CommState, sendbuf: Any) -> None:
    """See that no data are in place where the result comes from the other group's.

    Raises:
        MPIException: ERR_BUFFER, they are.
    """
    if state.communicator.between and says_in_place(sendbuf):
        raise state.fail(ERR_BUFFER, "between two groups nothing is done in place")
