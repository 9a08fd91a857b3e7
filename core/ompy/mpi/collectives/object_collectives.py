"""Communicators: collective operations on Python objects.

They stand above coll, on messages under the call's own tag: receivers learn sizes from the
messages. An object is pickled once where it begins and forwarded as it came.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable, Hashable, Sequence
from functools import partial, reduce
from typing import Any

from ompy.compiled import DECLARING, cfunc
from ompy.data.convertor import GrowingConvertor
from ompy.data.errors import MPIError
from ompy.data.request import Request as Operation
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.frameworks.collectives.call_order import detail_of
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.collectives.patience import PATIENCE, abandon, explained, inquire, only
from ompy.frameworks.pml import STANDARD
from ompy.mpi.buffers.objects import Pieces, convertor_of, pickle
from ompy.mpi.collectives.collective_calls import barrier
from ompy.mpi.collectives.operation import SUM, Op
from ompy.mpi.integers import whole_number
from ompy.mpi.point_to_point.peers import check_root
from ompy.mpi.state import CommBase, CommState, state_of_comm

if DECLARING:
    from ompy.data.convertor import Convertor
    from ompy.data.request import Request as Operation
    from ompy.engine.base import Engine
    from ompy.frameworks.communicator import Communicator


def lock_table(state: CommState) -> dict[Any, Any]:
    """The locks of a communicator, by name."""
    if state.locks is None:
        state.locks = {}
    return state.locks


def comm_lock(state: CommState, key: Hashable = None) -> Any:
    """A lock of a communicator: calls of several messages each do not mix between threads."""
    table = lock_table(state)
    found = table.get(key)
    if found is None:
        found = table.setdefault(key, _thread.allocate_lock())
    return found


def together(
    state: CommState, name: str, root: Any, function: Callable[..., Any], *arguments: Any
) -> Any:
    """Run a collective, one at a time of its name.

    Args:
        state: the communicator.
        name: of the call, as `call_kinds.py` has it.
        root: of the call; 0 where there is none.
        function: what is called with the communicator and the arguments.
        arguments: what else it gets.

    Raises:
        MPIException: it failed.
    """
    with comm_lock(state, name):
        state.communicator.order.begin(KINDS[name], detail_of(root))
        try:
            return function(state, *arguments)
        except Exception as problem:
            communicator, order = state.communicator, state.communicator.order
            abandon(communicator, order.tag(), problem)
            if not isinstance(problem, MPIError):
                raise
            found = explained(communicator, order.word, problem)
            raise state.raised(found) from found.__cause__


class ObjectCollectives(CommBase):
    """Collective operations on objects. All members call them in the same order."""

    __slots__ = ()

    def barrier(self) -> None:
        """Return when every member has called it."""
        barrier(state_of_comm(self))

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """The root's object, at every member."""
        state = state_of_comm(self)
        if type(root) is not int:
            root = whole_number(root)
        check_root(state, root)
        return together(state, "bcast", root, _bcast, obj, root)

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """Every member's object in a list at the root, None elsewhere."""
        state = state_of_comm(self)
        if type(root) is not int:
            root = whole_number(root)
        check_root(state, root)
        found: list[Any] | None = together(state, "gather", root, _gather, sendobj, root)
        return found

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """This member's item of the root's sequence."""
        state = state_of_comm(self)
        if type(root) is not int:
            root = whole_number(root)
        check_root(state, root)
        return together(state, "scatter", root, _scatter, sendobj, root)

    def allgather(self, sendobj: Any) -> list[Any]:
        """Every member's object in a list."""
        found: list[Any] = together(state_of_comm(self), "allgather", 0, _allgather, sendobj)
        return found

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """This member's item of every member's sequence."""
        found: list[Any] = together(state_of_comm(self), "alltoall", 0, _alltoall, sendobj)
        return found

    def reduce(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM, root: int = 0) -> Any:
        """Every member's object combined in rank order at the root, None elsewhere."""
        state = state_of_comm(self)
        if type(root) is not int:
            root = whole_number(root)
        check_root(state, root)
        return together(state, "reduce", root, _reduce, sendobj, op, root)

    def allreduce(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """Every member's object combined in rank order."""
        return together(state_of_comm(self), "allreduce", 0, _allreduce, sendobj, op)


# --- messages


Posted = tuple[Operation, GrowingConvertor, int]
Sent = tuple[Operation, int]


@cfunc
def _wait_for(state: CommState, operation: Operation, rank: int) -> None:
    """Wait for a message from or to a member; ask which call it is in when that takes long."""
    if not operation.complete:
        communicator: Communicator = state.communicator
        engine: Engine = communicator.context.engine
        if not engine.wait(operation, PATIENCE):
            inquire(communicator, operation, partial(only, rank))
    if operation.error:
        raise MPIError(operation.error, operation.detail)


@cfunc
def _begin(state: CommState, pieces: Pieces, target: int) -> Sent:
    comm: Communicator = state.communicator
    convertor: Convertor = convertor_of(pieces)
    return state.pml.isend(comm, convertor, target, comm.order.tag(), STANDARD), target


@cfunc
def _send(state: CommState, pieces: Pieces, target: int) -> None:
    comm: Communicator = state.communicator
    convertor: Convertor = convertor_of(pieces)
    _wait_for(state, state.pml.isend_waited(comm, convertor, target, comm.order.tag()), target)


@cfunc
def _post(state: CommState, source: int) -> Posted:
    comm: Communicator = state.communicator
    convertor: GrowingConvertor = GrowingConvertor()
    return state.pml.irecv(comm, convertor, source, comm.order.tag()), convertor, source


@cfunc
def _finish(state: CommState, posted: Posted) -> Any:
    """The memory a message is in."""
    operation: Operation
    convertor: GrowingConvertor
    operation, convertor, source = posted
    _wait_for(state, operation, source)
    return convertor.owner()


@cfunc
def _receive(state: CommState, source: int) -> Any:
    comm: Communicator = state.communicator
    convertor: GrowingConvertor = GrowingConvertor()
    _wait_for(state, state.pml.irecv(comm, convertor, source, comm.order.tag()), source)
    return convertor.owner()


@cfunc
def _wait(state: CommState, sent: Sequence[Sent]) -> None:
    operation: Operation
    for operation, target in sent:
        _wait_for(state, operation, target)


# --- collectives


@cfunc
def _forward(state: CommState, pieces: Pieces | None, root: int) -> Pieces:
    """Bring the root's message to everybody, along a binomial tree."""
    size: int = state.size
    place: int = (state.communicator.rank - root) % size
    step: int = 1
    while step < size and not place & step:
        step <<= 1
    if place:
        pieces = (_receive(state, (place - step + root) % size),)
    assert pieces is not None, "the root has a message"
    under_way = []
    while step > 1:
        step >>= 1
        if place + step < size:
            under_way.append(_begin(state, pieces, (place + step + root) % size))
    _wait(state, under_way)
    return pieces


def _bcast(state: CommState, obj: Any, root: int) -> Any:
    if state.communicator.rank == root:
        pieces = pickle.pieces(obj)
        _forward(state, pieces, root)
        return pickle.copy_of(obj, pieces)
    return pickle.load(_forward(state, None, root)[0])


def _gather(state: CommState, obj: Any, root: int) -> list[Any] | None:
    rank = state.communicator.rank
    if rank != root:
        _send(state, pickle.pieces(obj), root)
        return None
    posted = [None if source == rank else _post(state, source) for source in range(state.size)]
    own = pickle.copy(obj)
    return [own if each is None else pickle.load(_finish(state, each)) for each in posted]


def items_of(state: CommState, objects: Sequence[Any] | None) -> list[Any]:
    """One object for each member; None stands for nothing but None."""
    found = [None] * state.size if objects is None else list(objects)
    if len(found) != state.size:
        raise ValueError(f"expecting {state.size} items, got {len(found)}")
    return found


def _scatter(state: CommState, objects: Sequence[Any] | None, root: int) -> Any:
    rank = state.communicator.rank
    if rank != root:
        return pickle.load(_receive(state, root))
    items = items_of(state, objects)
    messages = [pickle.pieces(item) for item in items]  # all of them, before any is sent
    others = [target for target in range(state.size) if target != rank]
    _wait(state, [_begin(state, messages[target], target) for target in others])
    return pickle.copy_of(items[rank], messages[rank])


@cfunc
def _swap(state: CommState, messages: Sequence[Pieces], own: Any) -> list[Any]:
    """Message i to member i; what everybody sent here, this member's own object in its place."""
    rank: int = state.communicator.rank
    size: int = state.size
    posted = [None if source == rank else _post(state, source) for source in range(size)]
    # everybody begins with its right neighbour, so that no member is flooded by all at once
    targets = [(rank + step) % size for step in range(1, size)]
    sent = [_begin(state, messages[target], target) for target in targets]
    found = [own if each is None else pickle.load(_finish(state, each)) for each in posted]
    _wait(state, sent)
    return found


def _allgather(state: CommState, obj: Any) -> list[Any]:
    pieces = pickle.pieces(obj)
    return _swap(state, [pieces] * state.size, pickle.copy_of(obj, pieces))


def _alltoall(state: CommState, objects: Sequence[Any]) -> list[Any]:
    items = items_of(state, objects)
    messages = [pickle.pieces(item) for item in items]
    rank = state.communicator.rank
    return _swap(state, messages, pickle.copy_of(items[rank], messages[rank]))


def along_edges(state: CommState, objects: Sequence[Any], neighbours: Neighbours) -> list[Any]:
    """Object i to target i; the objects of the sources, None in place of nobody's."""
    posted: list[Any] = [None] * len(neighbours.sources)
    messages = [pickle.pieces(each) for each in objects]  # all of them, before any is sent
    for place in neighbours.receiving:
        posted[place] = _post(state, neighbours.sources[place])
    sent = [
        _begin(state, messages[place], neighbours.targets[place]) for place in neighbours.sending
    ]
    found = [None if each is None else pickle.load(_finish(state, each)) for each in posted]
    _wait(state, sent)
    return found


# --- between two groups (`intercomm_objects.py`)


def send_object(state: CommState, pieces: Pieces, target: int) -> None:
    """Send an object to a member of the other group."""
    _send(state, pieces, target)


def received_object(state: CommState, source: int) -> Any:
    """The object that a member of the other group has sent."""
    return pickle.load(_receive(state, source))


def swapped_objects(
    state: CommState, messages: Sequence[Pieces], sources: Sequence[int]
) -> list[Any]:
    """Message i to member i of the other group; what these members of it have sent here."""
    posted = [_post(state, source) for source in sources]
    sent = [_begin(state, pieces, target) for target, pieces in enumerate(messages)]
    found = [pickle.load(_finish(state, each)) for each in posted]
    _wait(state, sent)
    return found


# --- reductions


def _operand(obj: Any, op: Op | Callable[[Any, Any], Any]) -> Any:
    """An object to combine: a copy, if the function may change its arguments."""
    return obj if isinstance(op, Op) and op.is_predefined else pickle.copy(obj)


def _result(value: Any, obj: Any) -> Any:
    """What is handed out is never the object handed in."""
    return pickle.copy(value) if value is obj else value


@cfunc
def _combine(state: CommState, obj: Any, op: Op | Callable[[Any, Any], Any]) -> Any:
    """All objects combined in rank order, at member 0."""
    rank: int = state.communicator.rank
    size: int = state.size
    value = _operand(obj, op)
    step: int = 1
    while step < size:
        if rank & step:
            _send(state, pickle.pieces(value), rank - step)
            return None
        if rank + step < size:
            value = op(value, pickle.load(_receive(state, rank + step)))
        step <<= 1
    return value


def _reduce(state: CommState, obj: Any, op: Op | Callable[[Any, Any], Any], root: int) -> Any:
    rank = state.communicator.rank
    if not state.world.fast_reduce:
        objects = _gather(state, obj, root)
        return None if objects is None else reduce(op, objects)
    value = _combine(state, obj, op)
    if root != 0:
        if rank == 0:
            _send(state, pickle.pieces(value), root)
            return None
        if rank == root:
            return pickle.load(_receive(state, 0))
    return _result(value, obj) if rank == root else None


def _allreduce(state: CommState, obj: Any, op: Op | Callable[[Any, Any], Any]) -> Any:
    value = _reduce(state, obj, op, 0)
    if state.communicator.rank == 0:
        _forward(state, pickle.pieces(value), 0)
        return value
    return pickle.load(_forward(state, None, 0)[0])


def scan(state: CommState, obj: Any, op: Op | Callable[[Any, Any], Any]) -> Any:
    """The objects of members 0 to this one combined."""
    rank = state.communicator.rank
    value = _operand(obj, op)
    if rank:
        value = op(pickle.load(_receive(state, rank - 1)), value)
    if rank + 1 < state.size:
        _send(state, pickle.pieces(value), rank + 1)
    return _result(value, obj)


def exscan(state: CommState, obj: Any, op: Op | Callable[[Any, Any], Any]) -> Any:
    """The objects of the members before this one combined; None at the first."""
    rank = state.communicator.rank
    value = pickle.load(_receive(state, rank - 1)) if rank else None
    if rank + 1 < state.size:
        own = _operand(obj, op)
        following = op(_operand(value, op), own) if rank else own
        _send(state, pickle.pieces(following), rank + 1)
    return value
