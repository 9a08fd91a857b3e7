"""Collective calls that combine: what a call's arguments say, as coll wants to hear it.

As `collective_calls.py`: first the common calls, straight, then any.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from struct import Struct
from typing import Any, Final, NoReturn

from ompy import raw
from ompy.compiled import ccall, cfunc
from ompy.data.constants import PROC_NULL, ROOT
from ompy.data.errors import MPIError
from ompy.data.kernels import PREDEFINED
from ompy.data.layout import BYTES, Layout
from ompy.data.message import Blocks, Message
from ompy.data.operation import Operation
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.frameworks.collectives.call_order import detail_of
from ompy.mpi.buffers.common_forms import operand, says_in_place
from ompy.mpi.buffers.spec import Typed, message
from ompy.mpi.collectives.collective_calls import (
    Call,
    call_of,
    check_in_place,
    in_place,
    refuse,
)
from ompy.mpi.collectives.operation import Op, check_match, is_alike
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle
from ompy.mpi.point_to_point.peers import check_root, is_root, own_size
from ompy.mpi.state import CommState, OpState

_NUMBER: Final = Struct("<q")
REDUCE: Final[int] = KINDS["Reduce"]
ALLREDUCE: Final[int] = KINDS["Allreduce"]
SCAN: Final[int] = KINDS["Scan"]
EXSCAN: Final[int] = KINDS["Exscan"]
REDUCE_SCATTER_BLOCK: Final[int] = KINDS["Reduce_scatter_block"]
REDUCE_SCATTER: Final[int] = KINDS["Reduce_scatter"]


# --- the common calls, straight; false means that they are for the others below


@cfunc
def _operation_of(op: Op, spec: Any, layout: Layout) -> Operation | None:
    """The operation on plain messages of a layout, if it is predefined or was used like this.

    Args:
        op: as the user gave it.
        spec: the buffer whose datatype a user's function is told.
        layout: of that.
    """
    handle: Handle = op
    state: OpState | None = handle._inner
    if state is None:
        return None
    found: Operation | None = state.operation
    if found is not None or state.known is None:
        return found
    known, made, plainly = state.known
    if isinstance(spec, (list, tuple)):
        kind = spec[-1]
        return made if isinstance(kind, Datatype) and kind._inner is known else None
    return made if plainly is layout else None


@cfunc
def _plain_operands(sendbuf: Any, recvbuf: Any) -> tuple[Message | None, Message] | None:
    """The two messages of a reduction, if they are contiguous buffers of numbers that fit."""
    receive: Message | None = operand(recvbuf, True)
    if receive is None or in_place(sendbuf):
        return None if receive is None else (None, receive)
    send: Message | None = operand(sendbuf, False)
    if send is None or send.layout is not receive.layout or send.count != receive.count:
        return None
    return send, receive


@ccall
def reduced(state: CommState, sendbuf: Any, recvbuf: Any, op: Op, root: Any) -> bool:
    """Reduce contiguous buffers of numbers; to all if `root` is None.

    Raises:
        MPIException: it failed.
    """
    kind = ALLREDUCE if root is None else REDUCE
    state.communicator.order.begin(kind, detail_of(root))
    receive: Message | None = None
    if root is None or root == state.communicator.rank:
        receive = operand(recvbuf, True)
        if receive is None:
            return False
    elif type(root) is not int or not 0 <= root < state.size:
        return False
    send: Message | None = None
    if receive is None or not in_place(sendbuf):
        send = operand(sendbuf, False)
        if send is None:
            return False
        if receive is not None and (
            send.layout is not receive.layout or send.count != receive.count
        ):
            return False
    given: Message | None = receive if send is None else send
    assert given is not None, "this member has data"
    operation = _operation_of(op, recvbuf if send is None else sendbuf, given.layout)
    if operation is None:
        return False
    try:
        if root is None:
            assert receive is not None, "all have room"
            state.collectives().allreduce(send, receive, operation)
        else:
            state.collectives().reduce(send, receive, operation, root)
    except Exception as problem:
        raise failed(state, problem) from problem.__cause__
    return True


@ccall
def scanned(state: CommState, sendbuf: Any, recvbuf: Any, op: Op, inclusive: bool) -> bool:
    """Combine contiguous buffers of numbers, up to this member.

    Raises:
        MPIException: it failed.
    """
    state.communicator.order.begin(SCAN if inclusive else EXSCAN, 0)
    both = _plain_operands(sendbuf, recvbuf)
    if both is None:
        return False
    send: Message | None = both[0]
    receive: Message = both[1]
    operation = _operation_of(op, recvbuf if send is None else sendbuf, receive.layout)
    if operation is None:
        return False
    try:
        if inclusive:
            state.collectives().scan(send, receive, operation)
        else:
            state.collectives().exscan(send, receive, operation)
    except Exception as problem:
        raise failed(state, problem) from problem.__cause__
    return True


@ccall
def reduced_in_parts(
    state: CommState, sendbuf: Any, recvbuf: Any, recvcounts: Any, op: Op, even: bool
) -> bool:
    """Combine contiguous buffers of numbers; parts of the result to all.

    Args:
        state: of the communicator.
        sendbuf: what is combined.
        recvbuf: for this member's part.
        recvcounts: numbers of each member's part, where they are not `even`.
        op: the operation.
        even: all parts are equal.

    Raises:
        MPIException: it failed.
    """
    state.communicator.order.begin(REDUCE_SCATTER_BLOCK if even else REDUCE_SCATTER, 0)
    call: Call | None = _plain_parts(state, sendbuf, recvbuf, recvcounts, op, even)
    if call is None:
        return False
    try:
        state.collectives().reduce_scatter(*call.arguments)
    except Exception as problem:
        raise failed(state, problem) from problem.__cause__
    return True


@cfunc
def _plain_parts(
    state: CommState, sendbuf: Any, recvbuf: Any, recvcounts: Any, op: Op, even: bool
) -> Call | None:
    """The call of the same; None where the buffers are no contiguous ones of numbers that fit."""
    if in_place(sendbuf) or state.communicator.between:
        return None
    if even and isinstance(sendbuf, (list, tuple)) and len(sendbuf) != 2:
        return None  # a count that is given is one part's
    receive: Message | None = operand(recvbuf, True)
    send: Message | None = operand(sendbuf, False)
    if receive is None or send is None or send.layout is not receive.layout:
        return None
    counts = _even_counts(receive.count, state.size) if even else _listed_counts(state, recvcounts)
    if counts is None or counts[state.communicator.rank] != receive.count:
        return None
    total: int = 0
    each: int
    for each in counts:
        total += each
    operation = _operation_of(op, sendbuf, send.layout)
    if total != send.count or operation is None:
        return None
    return call_of(state, "reduce_scatter", (send, receive, counts, operation))


@cfunc
def _even_counts(count: int, ranks: int) -> list[int]:
    """The same number for each."""
    counts: list[int] = [count] * ranks
    return counts


@cfunc
def _listed_counts(state: CommState, given: Any) -> list[int] | None:
    """The numbers of a list of plain ones, one for each member; else None."""
    if type(given) is not list or len(given) != state.size:
        return None
    counts: list[int] = []
    count: int
    for each in given:
        count = raw.small(each)
        if count < 0:
            return None
        counts.append(count)
    return counts


@ccall
def failed(state: CommState, problem: Exception) -> MPIException:
    """The exception for a reduction that failed; one in a user's function ends the job."""
    if isinstance(problem, MPIError):
        return state.raised(problem)
    return raised_in_operation(state, problem)


def raised_in_operation(state: CommState, problem: Exception) -> NoReturn:
    """An exception in a user's operation ends the job: others wait for the result."""
    import traceback

    traceback.print_exception(problem)
    name = type(problem).__name__
    state.world.abort(1, f"a user-defined operation of a reduction raised {name}")


# --- any


@ccall
def reduce(state: CommState, sendbuf: Any, recvbuf: Any, op: Op, root: Any) -> Call:
    """The call of a reduction to one member."""
    try:
        check_root(state, root)
        if root == PROC_NULL:
            return call_of(state, "reduce", (None, None, PREDEFINED["MPI_SUM"], root))
        if root == ROOT:
            receive, datatype = message(recvbuf, True)
            send = None
        elif is_root(state, root):
            call: Call | None = _plain_reduction(state, "reduce", sendbuf, recvbuf, op)
            if call is not None:
                return call_of(state, "reduce", (*call.arguments, root))
            send, receive, datatype = _operands(sendbuf, recvbuf)
        else:
            mine: Message | None = operand(sendbuf, False)
            operation = None if mine is None else _operation_of(op, sendbuf, mine.layout)
            if operation is not None:
                return call_of(state, "reduce", (mine, None, operation, root))
            send, datatype = message(sendbuf, False)
            receive = None
        return call_of(state, "reduce", (send, receive, op._operation(datatype), root))
    except Exception as problem:
        refuse(state, problem)
        raise


@ccall
def reduction(state: CommState, operation: str, sendbuf: Any, recvbuf: Any, op: Op) -> Call:
    """The call of allreduce, scan or exscan."""
    try:
        check_in_place(state, sendbuf)
        call: Call | None = _plain_reduction(state, operation, sendbuf, recvbuf, op)
        if call is not None:
            return call
        send, receive, datatype = _operands(sendbuf, recvbuf)
        return call_of(state, operation, (send, receive, op._operation(datatype)))
    except Exception as problem:
        refuse(state, problem)
        raise


@cfunc
def _plain_reduction(
    state: CommState, operation: str, sendbuf: Any, recvbuf: Any, op: Op
) -> Call | None:
    """The same of contiguous buffers of numbers; None for all else."""
    both = _plain_operands(sendbuf, recvbuf)
    if both is None:
        return None
    send: Message | None = both[0]
    receive: Message = both[1]
    combining = _operation_of(op, recvbuf if send is None else sendbuf, receive.layout)
    if combining is None:
        return None
    return call_of(state, operation, (send, receive, combining))


@ccall
def reduce_scatter_block(state: CommState, sendbuf: Any, recvbuf: Any, op: Op) -> Call:
    """The call of a reduction whose result is handed out in equal parts."""
    try:
        check_in_place(state, sendbuf)
        call: Call | None = _plain_parts(state, sendbuf, recvbuf, None, op, True)
        if call is not None:
            return call
        parts = own_size(state)
        if says_in_place(sendbuf):
            part, datatype = message(recvbuf, True, parts)
            send = None
            receive = part.part(0, part.count * parts)
        else:
            receive, datatype = part, _ = message(recvbuf, True)
            sent, other = message(sendbuf, False, parts)
            check_match(sent, other, part, datatype)
            send = sent.part(0, sent.count * parts)
        counts = [part.count] * parts
        operation = op._operation(datatype)
        return call_of(state, "reduce_scatter", (send, receive, counts, operation))
    except Exception as problem:
        refuse(state, problem)
        raise


@ccall
def reduce_scatter(
    state: CommState, sendbuf: Any, recvbuf: Any, recvcounts: Sequence[int] | None, op: Op
) -> Call:
    """The call of a reduction whose result is handed out in parts."""
    try:
        check_in_place(state, sendbuf)
        call: Call | None = _plain_parts(state, sendbuf, recvbuf, recvcounts, op, False)
        if call is not None:
            return call
        receive, datatype = message(recvbuf, True)
        send, other = (None, datatype) if says_in_place(sendbuf) else message(sendbuf, False)
        counts = _part_counts(state, recvcounts, send, receive)
        total = sum(counts)
        if send is None:
            expected, got = total, receive.count
        else:
            if other != datatype and not is_alike(other._inner.layout, datatype._inner.layout):
                raise ValueError("message: the datatypes of a reduction differ")
            expected, got = total, send.count
            mine = counts[state.communicator.rank]
            if receive.count != mine:
                raise ValueError(f"message: expecting count {mine} to receive, got {receive.count}")
        if got != expected:
            raise ValueError(f"message: expecting count {expected}, the sum of all, got {got}")
        operation = op._operation(datatype)
        return call_of(state, "reduce_scatter", (send, receive, counts, operation))
    except Exception as problem:
        refuse(state, problem)
        raise


@cfunc
def _operands(sendbuf: Any, recvbuf: Any) -> tuple[Message | None, Message, Any]:
    """The two messages of a reduction, which must fit, and their datatype."""
    receive, datatype = message(recvbuf, True)
    if says_in_place(sendbuf):
        return None, receive, datatype
    send: Typed = message(sendbuf, False)
    check_match(send.message, send.datatype, receive, datatype)
    return send.message, receive, send.datatype


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
