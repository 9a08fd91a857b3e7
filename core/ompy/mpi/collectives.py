"""Communicators: collective operations on buffers."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from struct import Struct
from typing import Any, Final

from ompy.data.errors import MPIError
from ompy.data.layout import BYTES
from ompy.data.message import Blocks, Message
from ompy.mpi.base import CommBase
from ompy.mpi.markers import InPlaceType
from ompy.mpi.operation import SUM, Op, check_match
from ompy.mpi.peers import check_root
from ompy.mpi.spec import Typed, even_blocks, message, typed_blocks, vector_blocks
from ompy.mpi.state import CommState
from ompy.mpi.unsupported import absent

_NUMBER: Final = Struct("<q")


def in_place(spec: Any) -> bool:
    """Whether the data are in the other buffer already; None says so too."""
    return spec is None or isinstance(spec, InPlaceType)


def one(spec: Any, writable: bool) -> Message | None:
    """A message; None for in place."""
    return None if in_place(spec) else message(spec, writable).message


def many(spec: Any, writable: bool, ranks: int, parse: Callable[..., Any]) -> Blocks | None:
    """Blocks; None for in place."""
    if in_place(spec):
        return None
    found: Blocks = parse(spec, writable, ranks).blocks
    return found


class Collectives(CommBase):
    """Collective operations on buffers. All members call them in the same order."""

    __slots__ = ()

    def Barrier(self) -> None:
        """Return when every member has called it."""
        state = self._state()
        state.call(state.coll.barrier)

    def Bcast(self, buf: Any, root: int = 0) -> None:
        """Copy the root's buffer to every member's."""
        state = self._state()
        check_root(state, root)
        both = message(buf, state.communicator.rank != root).message
        state.call(state.coll.bcast, both, root)

    # --- gather and scatter

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Gather equal parts from every member at the root."""
        self._gather(sendbuf, recvbuf, root, even_blocks)

    def Gatherv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Gather parts of any size from every member at the root."""
        self._gather(sendbuf, recvbuf, root, vector_blocks)

    def _gather(self, sendbuf: Any, recvbuf: Any, root: int, parse: Callable[..., Any]) -> None:
        state = self._state()
        check_root(state, root)
        receive = None
        if state.communicator.rank == root:
            receive = parse(recvbuf, True, state.size).blocks
            send = one(sendbuf, False)
        else:
            send = message(sendbuf, False).message
        state.call(state.coll.gather, send, receive, root)

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Hand out equal parts of the root's buffer."""
        self._scatter(sendbuf, recvbuf, root, even_blocks)

    def Scatterv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Hand out parts of any size of the root's buffer."""
        self._scatter(sendbuf, recvbuf, root, vector_blocks)

    def _scatter(self, sendbuf: Any, recvbuf: Any, root: int, parse: Callable[..., Any]) -> None:
        state = self._state()
        check_root(state, root)
        send = None
        if state.communicator.rank == root:
            send = parse(sendbuf, False, state.size).blocks
            receive = one(recvbuf, True)
        else:
            receive = message(recvbuf, True).message
        state.call(state.coll.scatter, send, receive, root)

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """Gather equal parts from every member at every member."""
        state = self._state()
        receive = even_blocks(recvbuf, True, state.size).blocks
        state.call(state.coll.allgather, one(sendbuf, False), receive)

    def Allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:
        """Gather parts of any size from every member at every member."""
        state = self._state()
        receive = vector_blocks(recvbuf, True, state.size).blocks
        state.call(state.coll.allgather, one(sendbuf, False), receive)

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        """Send an equal part to every member."""
        state = self._state()
        send = many(sendbuf, False, state.size, even_blocks)
        receive = even_blocks(recvbuf, True, state.size).blocks
        state.call(state.coll.alltoall, send, receive)

    def Alltoallv(self, sendbuf: Any, recvbuf: Any) -> None:
        """Send a part of any size to every member."""
        state = self._state()
        send = many(sendbuf, False, state.size, vector_blocks)
        receive = vector_blocks(recvbuf, True, state.size).blocks
        state.call(state.coll.alltoall, send, receive)

    def Alltoallw(self, sendbuf: Any, recvbuf: Any) -> None:
        """Send a part of any size and datatype to every member."""
        state = self._state()
        send = None if in_place(sendbuf) else typed_blocks(sendbuf, False, state.size)
        receive = typed_blocks(recvbuf, True, state.size)
        state.call(state.coll.alltoall, send, receive)

    # --- reductions

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> None:
        """Combine every member's buffer at the root."""
        state = self._state()
        check_root(state, root)
        if state.communicator.rank == root:
            send, receive, datatype = _operands(sendbuf, recvbuf)
        else:
            send, datatype = message(sendbuf, False)
            receive = None
        reduction(state, state.coll.reduce, send, receive, op._operation(datatype), root)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Combine every member's buffer at every member."""
        state = self._state()
        send, receive, datatype = _operands(sendbuf, recvbuf)
        reduction(state, state.coll.allreduce, send, receive, op._operation(datatype))

    def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Combine every member's buffer and hand out equal parts of the result."""
        state = self._state()
        if in_place(sendbuf):
            part, datatype = message(recvbuf, True, state.size)
            send = None
            receive = part.part(0, part.count * state.size)
        else:
            receive, datatype = part, _ = message(recvbuf, True)
            send, other = message(sendbuf, False)
            whole = part.part(0, part.count * state.size)
            check_match(send, other, whole, datatype)
        counts = [part.count] * state.size
        operation = op._operation(datatype)
        reduction(state, state.coll.reduce_scatter, send, receive, counts, operation)

    def Reduce_scatter(
        self,
        sendbuf: Any,
        recvbuf: Any,
        recvcounts: Sequence[int] | None = None,
        op: Op = SUM,
    ) -> None:
        """Combine every member's buffer and hand out parts of the result.

        Args:
            sendbuf: this member's data, or IN_PLACE.
            recvbuf: for this member's part of the result; all the data when in place.
            recvcounts: elements of every member's part; if None they are asked for, and when
                in place shared out evenly.
            op: the operation.
        """
        state = self._state()
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
        reduction(state, state.coll.reduce_scatter, send, receive, counts, operation)

    def _scan(self, function: Any, sendbuf: Any, recvbuf: Any, op: Op) -> None:
        send, receive, datatype = _operands(sendbuf, recvbuf)
        reduction(self._state(), function, send, receive, op._operation(datatype))


def _operands(sendbuf: Any, recvbuf: Any) -> tuple[Message | None, Message, Any]:
    """The two messages of a reduction, which must fit, and their datatype."""
    receive, datatype = message(recvbuf, True)
    if in_place(sendbuf):
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
        if len(found) != state.size:
            raise ValueError(f"message: expecting {state.size} counts, got {len(found)}")
        return found
    if send is None:
        each, more = divmod(receive.count, state.size)
        return [each + 1] * more + [each] * (state.size - more)
    mine = memoryview(bytearray(_NUMBER.pack(receive.count)))
    memory = memoryview(bytearray(_NUMBER.size * state.size))
    everyones = Blocks.even(memory, 0, _NUMBER.size, BYTES, state.size)
    state.call(state.coll.allgather, Message(mine, 0, _NUMBER.size, BYTES), everyones)
    return [int(number) for (number,) in _NUMBER.iter_unpack(memory)]


def reduction(state: CommState, function: Callable[..., None], *arguments: Any) -> None:
    """Run a reduction. An exception in a user's operation ends the job: others wait for it.

    Raises:
        MPIException: it failed.
    """
    try:
        function(*arguments)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    except Exception as problem:
        import traceback

        traceback.print_exc()
        name = type(problem).__name__
        state.world.abort(1, f"a user-defined operation of a reduction raised {name}")


_OPERATIONS = (
    "barrier bcast gather gatherv scatter scatterv allgather allgatherv alltoall alltoallv "
    "alltoallw reduce allreduce reduce_scatter_block reduce_scatter"
)
absent(
    Collectives,
    " ".join(f"I{name}" for name in _OPERATIONS.split()),
    "nonblocking collectives",
)
absent(
    Collectives,
    " ".join(f"{name.capitalize()}_init" for name in _OPERATIONS.split()),
    "persistent collectives",
)
