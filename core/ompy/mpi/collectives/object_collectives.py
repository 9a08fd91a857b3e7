"""Communicators: collective operations on Python objects.

They stand above coll. Where a module of it carries messages of any size (`unsized.py`), short
objects go that way. All others go as messages under the call's own tag: receivers learn sizes from
the messages. An object is pickled once where it begins and forwarded as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

from ompy.compiled import DECLARING, cfunc
from ompy.data.errors import ERR_OTHER, MPIError
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.frameworks.collectives.call_order import detail_of
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.mpi.buffers.objects import (
    Pieces,
    copy_of_message,
    copy_of_object,
    message_of,
    object_of,
)
from ompy.mpi.collectives.collective_calls import barrier
from ompy.mpi.collectives.in_turn import comm_lock, tell_failure
from ompy.mpi.collectives.object_transfers import (
    Posted,
    begin_message,
    finish_receive,
    post_receive,
    receive_message,
    send_message,
    wait_all,
)
from ompy.mpi.collectives.operation import SUM, Op
from ompy.mpi.collectives.refusals import root_of, see_root
from ompy.mpi.state import CommBase, CommState, state_of_comm

if DECLARING:
    from ompy.frameworks.collectives.call_order import CallOrder
    from ompy.frameworks.collectives.coll_selection import SelectedColl
    from ompy.frameworks.collectives.unsized import UnsizedMessages
    from ompy.frameworks.communicator import Communicator

# members up to which a root combines what all have given; arbitrary: each step of a tree is a
# message and a turn of another rank, which takes longer than to combine short objects
LINEAR: Final = 8
# calls that may go through memory, in the order of their names; arbitrary numbers
BCAST: Final = 0
GATHER: Final = 1
SCATTER: Final = 2
ALLGATHER: Final = 3
ALLTOALL: Final = 4
REDUCE: Final = 5
ALLREDUCE: Final = 6
NEIGHBOR_ALLGATHER: Final = 7
NEIGHBOR_ALLTOALL: Final = 8
NAMES: Final = (
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "reduce",
    "allreduce",
    "neighbor_allgather",
    "neighbor_alltoall",
)


@cfunc
def _through_memory(state: CommState, which: int, obj: Any, op: Any, root: int) -> Any:
    """Run a collective, one at a time of its name, of which the others hear if it fails here.

    Args:
        state: the communicator.
        which: of the calls.
        obj: what this member gives.
        op: of a reduction; the edges of a call of neighbours; else None.
        root: of the call; 0 where there is none.
    """
    name = NAMES[which]
    lock = comm_lock(state, name)
    lock.acquire()
    try:
        communicator: Communicator = state.communicator
        order: CallOrder = communicator.order
        order.begin(KINDS[name], detail_of(root))
        if communicator.context.direct is not None:
            communicator.context.direct.enter_call(communicator)
        coll: SelectedColl | None = communicator.coll
        carrier: UnsizedMessages | None = None
        begun: int = 0
        try:
            if coll is not None:
                carrier = coll.unsized_messages()
                begun = 0 if carrier is None else carrier.begun()
            return _take_part(state, carrier, which, obj, op, root)
        except Exception as problem:
            if carrier is not None:
                end = begun + _parts(state, which)
                code = problem.code if isinstance(problem, MPIError) else ERR_OTHER
                while carrier.begun() < end:
                    carrier.give_up(code)
            tell_failure(state, problem)
            raise
    finally:
        lock.release()


@cfunc
def _parts(state: CommState, which: int) -> int:
    """How many calls of what carries objects a call makes."""
    if state.communicator.between:
        return 1
    if which == ALLREDUCE:
        return 2 if _is_linear(state) else 1
    return 0 if which == REDUCE and not _is_linear(state) else 1


@cfunc
def _take_part(
    state: CommState, carrier: UnsizedMessages | None, which: int, obj: Any, op: Any, root: int
) -> Any:
    """This member's part in a call."""
    found: Any
    if state.communicator.between:
        return _along_edges(state, carrier, _for_each(state, which, obj, op), op)
    if which == BCAST:
        found = _bcast(state, carrier, obj, root)
    elif which == GATHER:
        found = _gather(state, carrier, obj, root)
    elif which == SCATTER:
        found = _scatter(state, carrier, obj, root)
    elif which == ALLGATHER:
        found = _allgather(state, carrier, obj)
    elif which == ALLTOALL:
        found = _alltoall(state, carrier, obj)
    elif which == REDUCE:
        found = _reduce(state, carrier, obj, op, root)
    elif which == ALLREDUCE:
        found = _allreduce(state, carrier, obj, op)
    else:
        found = _along_edges(state, carrier, obj, op)
    return found


@cfunc
def _for_each(state: CommState, which: int, given: Any, edges: Neighbours) -> list[Any]:
    """The object for each edge to the other group."""
    if edges.targets and which in (SCATTER, ALLTOALL):
        return items_of(state, given)
    return [given] * len(edges.targets)


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
            root = root_of(self, "bcast", root)
        if not 0 <= root < state.size:
            see_root(self, "bcast", root)
        return _through_memory(state, BCAST, obj, None, root)

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """Every member's object in a list at the root, None elsewhere."""
        state = state_of_comm(self)
        if type(root) is not int:
            root = root_of(self, "gather", root)
        if not 0 <= root < state.size:
            see_root(self, "gather", root)
        found: list[Any] | None
        found = _through_memory(state, GATHER, sendobj, None, root)
        return found

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """This member's item of the root's sequence."""
        state = state_of_comm(self)
        if type(root) is not int:
            root = root_of(self, "scatter", root)
        if not 0 <= root < state.size:
            see_root(self, "scatter", root)
        return _through_memory(state, SCATTER, sendobj, None, root)

    def allgather(self, sendobj: Any) -> list[Any]:
        """Every member's object in a list."""
        state = state_of_comm(self)
        found: list[Any] = _through_memory(state, ALLGATHER, sendobj, None, 0)
        return found

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """This member's item of every member's sequence."""
        state = state_of_comm(self)
        found: list[Any] = _through_memory(state, ALLTOALL, sendobj, None, 0)
        return found

    def reduce(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM, root: int = 0) -> Any:
        """Every member's object combined in rank order at the root, None elsewhere."""
        state = state_of_comm(self)
        if type(root) is not int:
            root = root_of(self, "reduce", root)
        if not 0 <= root < state.size:
            see_root(self, "reduce", root)
        return _through_memory(state, REDUCE, sendobj, op, root)

    def allreduce(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """Every member's object combined in rank order."""
        return _through_memory(state_of_comm(self), ALLREDUCE, sendobj, op, 0)


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
        pieces = (receive_message(state, (place - step + root) % size),)
    assert pieces is not None, "the root has a message"
    under_way = []
    while step > 1:
        step >>= 1
        if place + step < size:
            under_way.append(begin_message(state, pieces, (place + step + root) % size))
    wait_all(state, under_way)
    return pieces


@cfunc
def _short(pieces: Pieces, room: int) -> Any:
    """A message as a carrier takes it: None if it is too long."""
    if len(pieces) == 1:
        only_one = pieces[0]
        if type(only_one) is bytes and len(only_one) <= room:
            return only_one
    return None


@cfunc
def _spread(
    state: CommState, carrier: UnsizedMessages | None, pieces: Pieces | None, root: int
) -> Any:
    """Bring the root's message to everybody: None at the root, elsewhere the memory it is in."""
    if pieces is not None:
        said: Any = None
        if carrier is not None:
            said = _short(pieces, carrier.room)
            carrier.bcast(said, root)
        if said is None:
            _forward(state, pieces, root)
        return None
    found: Any = None
    if carrier is not None:
        found = carrier.bcast(None, root)
    return found if found is not None else _forward(state, None, root)[0]


@cfunc
def _bcast(state: CommState, carrier: UnsizedMessages | None, obj: Any, root: int) -> Any:
    if state.communicator.rank == root:
        pieces = message_of(obj)
        _spread(state, carrier, pieces, root)
        return copy_of_message(obj, pieces)
    return object_of(_spread(state, carrier, None, root))


@cfunc
def _gather(
    state: CommState, carrier: UnsizedMessages | None, obj: Any, root: int
) -> list[Any] | None:
    rank = state.communicator.rank
    if rank != root:
        _give(state, carrier, message_of(obj), root)
        return None
    found = _gathered(state, carrier, root)
    return _loaded(state, found, copy_of_object(obj))


@cfunc
def _give(state: CommState, carrier: UnsizedMessages | None, pieces: Pieces, root: int) -> None:
    """A member's message to the root of a gather."""
    said: Any = None
    if carrier is not None:
        said = _short(pieces, carrier.room)
        carrier.gather(said, root)
    if said is None:
        send_message(state, pieces, root)


@cfunc
def _gathered(state: CommState, carrier: UnsizedMessages | None, root: int) -> list[Any]:
    """All other members' messages, at the root of a gather."""
    found: list[Any] = [None] * state.size
    if carrier is not None:
        found = carrier.gather(None, root) or found
    _receive(state, found, _posted(state, found))
    return found


@cfunc
def _posted(state: CommState, found: list[Any]) -> list[Posted | None]:
    """Receives of what no carrier has brought from the other members."""
    rank: int = state.communicator.rank
    source: int
    posted: list[Posted | None] = []
    for source in range(state.size):
        come = source == rank or found[source] is not None
        posted.append(None if come else post_receive(state, source))
    return posted


@cfunc
def _receive(state: CommState, found: list[Any], posted: list[Posted | None]) -> None:
    """Wait for what comes as messages.

    All of it has come before objects are made of any: one that raises then fails here alone.
    """
    source: int
    for source in range(state.size):
        receive = posted[source]
        if receive is not None:
            found[source] = finish_receive(state, receive)


@cfunc
def _loaded(state: CommState, found: list[Any], own: Any) -> list[Any]:
    """The objects in all members' messages, and this member's own."""
    rank: int = state.communicator.rank
    source: int
    for source in range(state.size):
        found[source] = own if source == rank else object_of(found[source])
    return found


def items_of(state: CommState, objects: Sequence[Any] | None) -> list[Any]:
    """One object for each member; None stands for nothing but None."""
    found = [None] * state.size if objects is None else list(objects)
    if len(found) != state.size:
        raise ValueError(f"expecting {state.size} items, got {len(found)}")
    return found


@cfunc
def _scatter(
    state: CommState, carrier: UnsizedMessages | None, objects: Sequence[Any] | None, root: int
) -> Any:
    rank = state.communicator.rank
    if rank != root:
        found: Any = None
        if carrier is not None:
            found = carrier.scatter(None, root)
        return object_of(receive_message(state, root) if found is None else found)
    items = items_of(state, objects)
    messages = [message_of(item) for item in items]  # all of them, before any is sent
    targets = [target for target in range(state.size) if target != rank]
    if carrier is not None:
        said = _all_short(messages, carrier.block_room)
        carrier.scatter(said, root)
        targets = [target for target in targets if said[target] is None]
    wait_all(state, [begin_message(state, messages[target], target) for target in targets])
    return copy_of_message(items[rank], messages[rank])


@cfunc
def _all_short(messages: list[Pieces], room: int) -> list[Any]:
    """Messages as a carrier takes them."""
    found: list[Any] = []
    for each in messages:
        found.append(_short(each, room))
    return found


@cfunc
def _swap(state: CommState, messages: Sequence[Pieces], said: list[Any], found: list[Any]) -> None:
    """Message i to member i; the messages that all others sent here.

    Args:
        state: the communicator.
        messages: to each member.
        said: what a carrier has taken of `messages`; None for each other one.
        found: what it has brought, likewise; the result is in it.
    """
    rank: int = state.communicator.rank
    size: int = state.size
    posted = _posted(state, found)
    # everybody begins with its right neighbour, so that no member is flooded by all at once
    targets = [(rank + step) % size for step in range(1, size)]
    sent = [begin_message(state, messages[each], each) for each in targets if said[each] is None]
    _receive(state, found, posted)
    wait_all(state, sent)


@cfunc
def _allgather(state: CommState, carrier: UnsizedMessages | None, obj: Any) -> list[Any]:
    pieces = message_of(obj)
    said: Any = None
    found: list[Any] = [None] * state.size
    if carrier is not None:
        said = _short(pieces, carrier.room)
        found = carrier.allgather(said)
    _swap(state, [pieces] * state.size, [said] * state.size, found)
    return _loaded(state, found, copy_of_message(obj, pieces))


@cfunc
def _alltoall(
    state: CommState, carrier: UnsizedMessages | None, objects: Sequence[Any]
) -> list[Any]:
    items = items_of(state, objects)
    messages = [message_of(item) for item in items]
    rank = state.communicator.rank
    said: list[Any] = [None] * state.size
    found: list[Any] = said[:]
    if carrier is not None:
        said = _all_short(messages, carrier.block_room)
        found = carrier.alltoall(said)
    _swap(state, messages, said, found)
    return _loaded(state, found, copy_of_message(items[rank], messages[rank]))


def gathered_along_edges(
    state: CommState, objects: Sequence[Any], neighbours: Neighbours
) -> list[Any]:
    """Object i to target i; the objects of the sources, None in place of nobody's."""
    found: list[Any] = _through_memory(state, NEIGHBOR_ALLGATHER, objects, neighbours, 0)
    return found


def swapped_along_edges(
    state: CommState, objects: Sequence[Any], neighbours: Neighbours
) -> list[Any]:
    """The same, as another call."""
    found: list[Any] = _through_memory(state, NEIGHBOR_ALLTOALL, objects, neighbours, 0)
    return found


@cfunc
def _along_edges(
    state: CommState,
    carrier: UnsizedMessages | None,
    objects: Sequence[Any],
    neighbours: Neighbours,
) -> list[Any]:
    targets = neighbours.targets
    size: int = len(neighbours.sources)
    messages: list[Any] = []  # all of them, before any is sent
    for place, each in enumerate(objects):
        again = place and each is objects[place - 1]
        messages.append(messages[place - 1] if again else message_of(each))
    said: list[Any] = [None] * len(targets)
    found: list[Any] = [None] * size
    if carrier is not None:
        said = _all_short(messages, carrier.edge_room(neighbours))
        found = carrier.along(said, neighbours)
    posted: list[Any] = [None] * size
    for place in neighbours.receiving:
        if found[place] is None:
            posted[place] = post_receive(state, neighbours.sources[place])
    sent = [
        begin_message(state, messages[place], targets[place])
        for place in neighbours.sending
        if said[place] is None
    ]
    for place in neighbours.receiving:
        if found[place] is None:
            found[place] = finish_receive(state, posted[place])
    wait_all(state, sent)
    for place in neighbours.receiving:
        found[place] = object_of(found[place])
    return found


def along_edges_between(
    state: CommState, which: int, given: Any, edges: Neighbours, root: int
) -> list[Any]:
    """A call between two groups (`intercomm_objects.py`): what comes along each edge.

    `given` is the object for all targets; of a scatter or alltoall there is one for each.
    """
    found: list[Any] = _through_memory(state, which, given, edges, root)
    return found


# --- reductions


@cfunc
def _operand(obj: Any, op: Op | Callable[[Any, Any], Any]) -> Any:
    """An object to combine: a copy, if the function may change its arguments."""
    return obj if isinstance(op, Op) and op.is_predefined else copy_of_object(obj)


@cfunc
def _result(value: Any, obj: Any) -> Any:
    """What is handed out is never the object handed in."""
    return copy_of_object(value) if value is obj else value


@cfunc
def _combine(state: CommState, obj: Any, op: Op | Callable[[Any, Any], Any]) -> Any:
    """All objects combined in rank order, at member 0."""
    rank: int = state.communicator.rank
    size: int = state.size
    value = _operand(obj, op)
    step: int = 1
    while step < size:
        if rank & step:
            send_message(state, message_of(value), rank - step)
            return None
        if rank + step < size:
            value = op(value, object_of(receive_message(state, rank + step)))
        step <<= 1
    return value


@cfunc
def _is_linear(state: CommState) -> bool:
    """Whether a root combines what all have given, where that goes through memory."""
    return state.size <= LINEAR or not state.world.fast_reduce


@cfunc
def _reduce(
    state: CommState,
    carrier: UnsizedMessages | None,
    obj: Any,
    op: Op | Callable[[Any, Any], Any],
    root: int,
) -> Any:
    rank = state.communicator.rank
    if not state.world.fast_reduce:
        objects = _gather(state, carrier, obj, root)
        return None if objects is None else reduce(op, objects)
    if carrier is not None and _is_linear(state):
        if rank != root:
            _give(state, carrier, message_of(obj), root)
            return None
        found = _gathered(state, carrier, root)
        return _result(reduce(op, _loaded(state, found, _operand(obj, op))), obj)
    value = _combine(state, obj, op)
    if root != 0:
        if rank == 0:
            send_message(state, message_of(value), root)
            return None
        if rank == root:
            return object_of(receive_message(state, 0))
    return _result(value, obj) if rank == root else None


@cfunc
def _allreduce(
    state: CommState,
    carrier: UnsizedMessages | None,
    obj: Any,
    op: Op | Callable[[Any, Any], Any],
) -> Any:
    value = _reduce(state, carrier, obj, op, 0)
    if state.communicator.rank == 0:
        _spread(state, carrier, message_of(value), 0)
        return value
    return object_of(_spread(state, carrier, None, 0))


def scan(state: CommState, obj: Any, op: Op | Callable[[Any, Any], Any]) -> Any:
    """The objects of members 0 to this one combined."""
    rank = state.communicator.rank
    value = _operand(obj, op)
    if rank:
        value = op(object_of(receive_message(state, rank - 1)), value)
    if rank + 1 < state.size:
        send_message(state, message_of(value), rank + 1)
    return _result(value, obj)


def exscan(state: CommState, obj: Any, op: Op | Callable[[Any, Any], Any]) -> Any:
    """The objects of the members before this one combined; None at the first."""
    rank = state.communicator.rank
    value = object_of(receive_message(state, rank - 1)) if rank else None
    if rank + 1 < state.size:
        own = _operand(obj, op)
        following = op(_operand(value, op), own) if rank else own
        send_message(state, message_of(following), rank + 1)
    return value
