"""Collective calls on buffers: what a call's arguments say, as coll wants to hear it.

Blocking, nonblocking and persistent calls of one name read their arguments alike.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from struct import Struct
from typing import Any, Final

from ompy.compiled import ccall, cclass, cfunc, recycled
from ompy.data.constants import PROC_NULL, ROOT
from ompy.data.errors import ERR_BUFFER, MPIError
from ompy.data.kernels import PREDEFINED
from ompy.data.layout import BYTES
from ompy.data.message import Blocks, Message, parted
from ompy.data.operation import Operation
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.frameworks.collectives.call_order import detail_of
from ompy.mpi.buffers.common_forms import plain, plain_or_derived
from ompy.mpi.buffers.markers import InPlaceType
from ompy.mpi.buffers.spec import (
    Typed,
    even_blocks,
    message,
    plain_vector_blocks,
    typed_blocks,
    vector_blocks,
)
from ompy.mpi.collectives.operation import Op, check_match
from ompy.mpi.point_to_point.peers import check_root, is_root, own_size
from ompy.mpi.state import CommState

_NUMBER: Final = Struct("<q")
NO_MESSAGE: Final = Message(memoryview(bytearray()), 0, 0, BYTES)
BARRIER: Final[int] = KINDS["Barrier"]
BCAST: Final[int] = KINDS["Bcast"]
REDUCE: Final[int] = KINDS["Reduce"]
ALLREDUCE: Final[int] = KINDS["Allreduce"]
GATHER: Final[int] = KINDS["Gather"]
SCATTER: Final[int] = KINDS["Scatter"]
ALLGATHER: Final[int] = KINDS["Allgather"]
ALLTOALL: Final[int] = KINDS["Alltoall"]
SCAN: Final[int] = KINDS["Scan"]
EXSCAN: Final[int] = KINDS["Exscan"]
REDUCE_SCATTER_BLOCK: Final[int] = KINDS["Reduce_scatter_block"]


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
    """Whether the data are in the other buffer already; None says so too."""
    return spec is None or type(spec) is InPlaceType


@ccall
def single(spec: Any, writable: bool) -> Message:
    """The message of a specification, whatever its datatype."""
    found: Message | None = plain_or_derived(spec, writable)
    return message(spec, writable).message if found is None else found


@ccall
def one(spec: Any, writable: bool) -> Message | None:
    """A message; None for in place."""
    return None if in_place(spec) else single(spec, writable)


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
    if in_place(spec):
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
def _predefined(op: Op) -> Operation | None:
    """The operation of a predefined one."""
    inner = op._inner
    return None if inner is None else inner.operation


@ccall
def reduced(state: CommState, sendbuf: Any, recvbuf: Any, op: Op, root: Any) -> bool:
    """Reduce contiguous buffers of numbers by a predefined operation; to all if `root` is None.

    Raises:
        MPIException: it failed.
    """
    kind = ALLREDUCE if root is None else REDUCE
    state.communicator.order.begin(kind, detail_of(root))
    operation = _predefined(op)
    if operation is None:
        return False
    receive: Message | None = None
    if root is None or root == state.communicator.rank:
        receive = plain(recvbuf, True)
        if receive is None:
            return False
    elif type(root) is not int or not 0 <= root < state.size:
        return False
    send: Message | None = None
    if receive is None or not in_place(sendbuf):
        send = plain(sendbuf, False)
        if send is None:
            return False
        if receive is not None and (
            send.layout is not receive.layout or send.count != receive.count
        ):
            return False
    try:
        if root is None:
            assert receive is not None, "all have room"
            state.collectives().allreduce(send, receive, operation)
        else:
            state.collectives().reduce(send, receive, operation, root)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    return True


@cfunc
def _plain_blocks(buffer: Any, writable: bool, ranks: int) -> Blocks | None:
    """Equal parts of a contiguous buffer of numbers, or None."""
    counted: bool = isinstance(buffer, (list, tuple)) and len(buffer) != 2  # that is of one part
    whole: Message | None = None if counted else plain(buffer, writable)
    return None if whole is None else parted(whole, ranks)


@ccall
def gathered(state: CommState, sendbuf: Any, recvbuf: Any, root: Any) -> bool:
    """Gather contiguous buffers of numbers.

    Raises:
        MPIException: it failed.
    """
    state.communicator.order.begin(GATHER, detail_of(root))
    if type(root) is not int or not 0 <= root < state.size:
        return False
    send: Message | None = None
    receive: Blocks | None = None
    if state.communicator.rank == root:
        receive = _plain_blocks(recvbuf, True, state.size)
        if receive is None:
            return False
    if receive is None or not in_place(sendbuf):
        send = plain(sendbuf, False)
        if send is None or (receive is not None and not receive.fits(send)):
            return False
    try:
        state.collectives().gather(send, receive, root)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    return True


@ccall
def scattered(state: CommState, sendbuf: Any, recvbuf: Any, root: Any) -> bool:
    """Scatter a contiguous buffer of numbers.

    Raises:
        MPIException: it failed.
    """
    state.communicator.order.begin(SCATTER, detail_of(root))
    if type(root) is not int or not 0 <= root < state.size:
        return False
    send: Blocks | None = None
    receive: Message | None = None
    if state.communicator.rank == root:
        send = _plain_blocks(sendbuf, False, state.size)
        if send is None:
            return False
    if send is None or not in_place(recvbuf):
        receive = plain(recvbuf, True)
        if receive is None or (send is not None and not send.fits(receive)):
            return False
    try:
        state.collectives().scatter(send, receive, root)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    return True


@ccall
def allgathered(state: CommState, sendbuf: Any, recvbuf: Any) -> bool:
    """Gather contiguous buffers of numbers everywhere.

    Raises:
        MPIException: it failed.
    """
    state.communicator.order.begin(ALLGATHER, 0)
    receive: Blocks | None = _plain_blocks(recvbuf, True, state.size)
    if receive is None:
        return False
    send: Message | None = None
    if not in_place(sendbuf):
        send = plain(sendbuf, False)
        if send is None or not receive.fits(send):
            return False
    try:
        state.collectives().allgather(send, receive)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    return True


@ccall
def exchanged(state: CommState, sendbuf: Any, recvbuf: Any) -> bool:
    """Send equal parts of a contiguous buffer of numbers to all.

    Raises:
        MPIException: it failed.
    """
    state.communicator.order.begin(ALLTOALL, 0)
    receive: Blocks | None = _plain_blocks(recvbuf, True, state.size)
    if receive is None:
        return False
    send: Blocks | None = None
    if not in_place(sendbuf):
        send = _plain_blocks(sendbuf, False, state.size)
        if send is None:
            return False
    try:
        state.collectives().alltoall(send, receive)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    return True


@ccall
def passed_along(state: CommState, sendbuf: Any, recvbuf: Any, edges: Any, same: bool) -> bool:
    """Send contiguous buffers of numbers along edges, in a call that has begun.

    Args:
        state: of the communicator.
        sendbuf: what is sent.
        recvbuf: room for a part from each edge.
        edges: of this member.
        same: all of it is sent along each edge; else a part.

    Raises:
        MPIException: it failed.
    """
    receive: Blocks | None = None
    if edges.sources and edges.targets:
        receive = _plain_blocks(recvbuf, True, len(edges.sources))
    if receive is None:
        return False
    send: Any = plain(sendbuf, False) if same else None
    if not same:
        send = _plain_blocks(sendbuf, False, len(edges.targets))
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


@ccall
def scanned(state: CommState, sendbuf: Any, recvbuf: Any, op: Op, inclusive: bool) -> bool:
    """Combine contiguous buffers of numbers by a predefined operation, up to this member.

    Raises:
        MPIException: it failed.
    """
    state.communicator.order.begin(SCAN if inclusive else EXSCAN, 0)
    operation = _predefined(op)
    receive: Message | None = plain(recvbuf, True)
    if operation is None or receive is None:
        return False
    send: Message | None = None
    if not in_place(sendbuf):
        send = plain(sendbuf, False)
        if send is None or send.layout is not receive.layout or send.count != receive.count:
            return False
    try:
        if inclusive:
            state.collectives().scan(send, receive, operation)
        else:
            state.collectives().exscan(send, receive, operation)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    return True


@ccall
def reduced_in_parts(state: CommState, sendbuf: Any, recvbuf: Any, op: Op) -> bool:
    """Combine contiguous buffers of numbers by a predefined operation; equal parts to all.

    Raises:
        MPIException: it failed.
    """
    state.communicator.order.begin(REDUCE_SCATTER_BLOCK, 0)
    operation = _predefined(op)
    if operation is None or in_place(sendbuf):
        return False
    receive: Message | None = plain(recvbuf, True)
    send: Message | None = plain(sendbuf, False)
    if receive is None or send is None or send.layout is not receive.layout:
        return False
    count: int = receive.count
    if send.count != count * state.size:
        return False
    try:
        state.collectives().reduce_scatter(send, receive, [count] * state.size, operation)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    return True


# --- any


@ccall
def bcast(state: CommState, buf: Any, root: Any) -> Call:
    """The call of a broadcast."""
    check_root(state, root)
    if root == PROC_NULL:
        return call_of(state, "bcast", (NO_MESSAGE, root))
    both = single(buf, not is_root(state, root))
    return call_of(state, "bcast", (both, root))


@ccall
def gather(
    state: CommState, sendbuf: Any, recvbuf: Any, root: Any, parse: Callable[..., Any]
) -> Call:
    """The call of a gather; `parse` reads the specification of the root's buffer."""
    check_root(state, root)
    send = receive = None
    if is_root(state, root):
        receive = blocks_of(recvbuf, True, state.size, parse)
        send = None if root == ROOT else one(sendbuf, False)
    elif root != PROC_NULL:
        send = single(sendbuf, False)
    return call_of(state, "gather", (send, receive, root))


@ccall
def scatter(
    state: CommState, sendbuf: Any, recvbuf: Any, root: Any, parse: Callable[..., Any]
) -> Call:
    """The call of a scatter; `parse` reads the specification of the root's buffer."""
    check_root(state, root)
    send = receive = None
    if is_root(state, root):
        send = blocks_of(sendbuf, False, state.size, parse)
        receive = None if root == ROOT else one(recvbuf, True)
    elif root != PROC_NULL:
        receive = single(recvbuf, True)
    return call_of(state, "scatter", (send, receive, root))


@ccall
def allgather(state: CommState, sendbuf: Any, recvbuf: Any, parse: Callable[..., Any]) -> Call:
    """The call of an allgather."""
    _check_in_place(state, sendbuf)
    receive = blocks_of(recvbuf, True, state.size, parse)
    return call_of(state, "allgather", (one(sendbuf, False), receive))


@ccall
def alltoall(state: CommState, sendbuf: Any, recvbuf: Any, parse: Callable[..., Any]) -> Call:
    """The call of an alltoall."""
    _check_in_place(state, sendbuf)
    send = many(sendbuf, False, state.size, parse)
    receive = blocks_of(recvbuf, True, state.size, parse)
    if parse is vector_blocks:  # equal blocks here say nothing about the other members'
        receive.regular = False
    return call_of(state, "alltoall", (send, receive))


@ccall
def alltoallw(state: CommState, sendbuf: Any, recvbuf: Any) -> Call:
    """The call of an alltoall with a datatype for each block."""
    _check_in_place(state, sendbuf)
    send = None if in_place(sendbuf) else typed_blocks(sendbuf, False, state.size)
    return call_of(state, "alltoall", (send, typed_blocks(recvbuf, True, state.size)))


# --- reductions


@ccall
def reduce(state: CommState, sendbuf: Any, recvbuf: Any, op: Op, root: Any) -> Call:
    """The call of a reduction to one member."""
    check_root(state, root)
    if root == PROC_NULL:
        return call_of(state, "reduce", (None, None, PREDEFINED["MPI_SUM"], root))
    if root == ROOT:
        receive, datatype = message(recvbuf, True)
        send = None
    elif is_root(state, root):
        predefined = _predefined(op)
        both = None if predefined is None else _plain_operands(sendbuf, recvbuf)
        if both is not None:
            return call_of(state, "reduce", (*both, predefined, root))
        send, receive, datatype = _operands(sendbuf, recvbuf)
    else:
        send, datatype = message(sendbuf, False)
        receive = None
    return call_of(state, "reduce", (send, receive, op._operation(datatype), root))


@ccall
def reduction(state: CommState, operation: str, sendbuf: Any, recvbuf: Any, op: Op) -> Call:
    """The call of allreduce, scan or exscan."""
    _check_in_place(state, sendbuf)
    predefined = _predefined(op)
    if predefined is not None:
        both = _plain_operands(sendbuf, recvbuf)
        if both is not None:
            return call_of(state, operation, (*both, predefined))
    send, receive, datatype = _operands(sendbuf, recvbuf)
    return call_of(state, operation, (send, receive, op._operation(datatype)))


@ccall
def reduce_scatter_block(state: CommState, sendbuf: Any, recvbuf: Any, op: Op) -> Call:
    """The call of a reduction whose result is handed out in equal parts."""
    _check_in_place(state, sendbuf)
    parts = own_size(state)
    if in_place(sendbuf):
        part, datatype = message(recvbuf, True, parts)
        send = None
        receive = part.part(0, part.count * parts)
    else:
        receive, datatype = part, _ = message(recvbuf, True)
        send, other = message(sendbuf, False)
        whole = part.part(0, part.count * parts)
        check_match(send, other, whole, datatype)
    counts = [part.count] * parts
    operation = op._operation(datatype)
    return call_of(state, "reduce_scatter", (send, receive, counts, operation))


@ccall
def reduce_scatter(
    state: CommState, sendbuf: Any, recvbuf: Any, recvcounts: Sequence[int] | None, op: Op
) -> Call:
    """The call of a reduction whose result is handed out in parts."""
    _check_in_place(state, sendbuf)
    receive, datatype = message(recvbuf, True)
    send, other = (None, datatype) if in_place(sendbuf) else message(sendbuf, False)
    counts = _part_counts(state, recvcounts, send, receive)
    total = sum(counts)
    if send is None:
        expected, got = total, receive.count
    else:
        if other != datatype and other._inner.layout is not datatype._inner.layout:
            raise ValueError("message: the datatypes of a reduction differ")
        expected, got = total, send.count
        mine = counts[state.communicator.rank]
        if receive.count != mine:
            raise ValueError(f"message: expecting count {mine} to receive, got {receive.count}")
    if got != expected:
        raise ValueError(f"message: expecting count {expected}, the sum of all, got {got}")
    operation = op._operation(datatype)
    return call_of(state, "reduce_scatter", (send, receive, counts, operation))


@cfunc
def _check_in_place(state: CommState, sendbuf: Any) -> None:
    """See that no data are in place where the result comes from the other group's.

    Raises:
        MPIException: ERR_BUFFER, they are.
    """
    if state.communicator.between and in_place(sendbuf):
        raise state.fail(ERR_BUFFER, "between two groups nothing is done in place")


@cfunc
def _operands(sendbuf: Any, recvbuf: Any) -> tuple[Message | None, Message, Any]:
    """The two messages of a reduction, which must fit, and their datatype."""
    receive, datatype = message(recvbuf, True)
    if in_place(sendbuf):
        return None, receive, datatype
    send: Typed = message(sendbuf, False)
    check_match(send.message, send.datatype, receive, datatype)
    return send.message, receive, send.datatype


@cfunc
def _plain_operands(sendbuf: Any, recvbuf: Any) -> tuple[Message | None, Message] | None:
    """The two messages of a reduction, if they are contiguous buffers of numbers that fit."""
    receive: Message | None = plain(recvbuf, True)
    if receive is None or in_place(sendbuf):
        return None if receive is None else (None, receive)
    send: Message | None = plain(sendbuf, False)
    if send is None or send.layout is not receive.layout or send.count != receive.count:
        return None
    return send, receive


def _part_counts(
    state: CommState, counts: Sequence[int] | None, send: Message | None, receive: Message
) -> list[int]:
    """Elements of the result for every member."""
    if counts is not None:
        found = [index(count) for count in counts]
        if len(found) != own_size(state):
            raise ValueError(f"message: expecting {own_size(state)} counts, got {len(found)}")
        return found
    if send is None:
        each, more = divmod(receive.count, state.size)
        return [each + 1] * more + [each] * (state.size - more)
    if state.communicator.between:
        raise ValueError("message: between two groups the counts of the parts have to be given")
    mine = memoryview(bytearray(_NUMBER.pack(receive.count)))
    memory = memoryview(bytearray(_NUMBER.size * state.size))
    everyones = Blocks.even(memory, 0, _NUMBER.size, BYTES, state.size)
    state.call(state.collectives().allgather, Message(mine, 0, _NUMBER.size, BYTES), everyones)
    return [int(number) for (number,) in _NUMBER.iter_unpack(memory)]
