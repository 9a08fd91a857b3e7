"""Reduce and allreduce.

The left operand of every combination is of lower ranks than the right one, except where the
operation commutes and the docstring says so. Members that come to the same result on their
own do so from the same operands in the same order: they get the same bits.
"""

from __future__ import annotations

from ompy.data.convertor import allocate_memory
from ompy.data.message import Message
from ompy.data.operation import Operation
from ompy.data.packed import Room, copy_message, in_place, to_send
from ompy.frameworks.coll_base.broadcast import binomial, linear
from ompy.frameworks.coll_base.combine import Combine, combining
from ompy.frameworks.coll_base.places import Places
from ompy.frameworks.coll_base.tree import children, parent
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule, Steps


def reduce(
    exchange: Exchange,
    send: Message | None,
    receive: Message | None,
    operation: Operation,
    root: int,
) -> Schedule:
    """Combine along a binomial tree; `send` may be None wherever `receive` holds the data.

    Its top is the root when the operation commutes: the order is then that of the ranks,
    but beginning with the root. Else it is rank 0, which passes the result on.
    """
    rank = exchange.rank
    if exchange.size == 2:
        yield from _reduce_pair(exchange, send, receive, operation, root)
        return
    mine = send if send is not None else receive
    assert mine is not None, "every member has data"
    combine = combining(operation, mine.layout)
    top = root if operation.commutative else 0
    room = Room(receive) if receive is not None and rank == root else None
    result = room.view if room is not None and rank == top else None
    data = to_send(mine)
    if send is None and result is not None:
        data = memoryview(bytes(data))  # the result comes where they are
    total = yield from _up(exchange, data, combine, top, result)
    if top != root:
        if rank == top:
            exchange.send(total, root)
        elif room is not None:
            exchange.receive(room.view, top)
        yield
    elif room is not None and total is not room.view:
        room.view[:] = total  # nobody else to combine with
    if room is not None:
        room.settle()


def _reduce_pair(
    exchange: Exchange,
    send: Message | None,
    receive: Message | None,
    operation: Operation,
    root: int,
) -> Schedule:
    """Of two members one sends, the other combines."""
    rank = exchange.rank
    if rank != root:
        mine = send if send is not None else receive
        assert mine is not None, "every member has data"
        operation.check_layout(mine.layout)
        exchange.send_message(mine, root)
        yield
        return
    assert receive is not None, "the root has room for the result"
    first = operation.commutative or rank == 0
    yield from _pair(exchange, send, receive, operation, first, sends=False)


def _pair(
    exchange: Exchange,
    send: Message | None,
    receive: Message,
    operation: Operation,
    first: bool,
    sends: bool,
) -> Schedule:
    """Combine with the data of the other one of two members.

    Args:
        exchange: of the call.
        send: the own data; None: `receive` holds them.
        receive: where the result is wanted.
        operation: what combines.
        first: the own data are the left operand.
        sends: the other one needs them, too.
    """
    mine: Message = send if send is not None else receive
    layout = receive.layout
    operation.check_layout(layout)
    other = 1 - exchange.rank
    size = receive.size
    room: Room | None = None
    coming = in_place(receive) if first and send is not None else None
    beside = coming is None
    if coming is None:
        coming = allocate_memory(size)
    exchange.receive(coming, other)
    if sends:
        exchange.send_message(mine, other)
    if not first:
        room = Room(receive, mine)
    yield
    if room is not None:
        operation.combine(layout, coming, 0, room.view, 0, size)
        room.settle()
        return
    operation.combine(layout, to_send(mine), 0, coming, 0, size)
    if beside:
        receive.store(coming)


def _up(
    exchange: Exchange,
    total: memoryview,
    combine: Combine,
    top: int,
    result: memoryview | None,
) -> Steps:
    """Combine the own data, which are left alone, with those of the subtree.

    Returns:
        The combination; in `result`, if that is given and there was anybody below. It has
        been sent to the place above.
    """
    size = exchange.size
    place = (exchange.rank - top) % size
    below = children(place, size)
    spare: memoryview | None = None
    for left, child in zip(reversed(range(len(below))), below, strict=True):
        # what comes in becomes the total: it has to come in where the total is not, and for
        # the last child to where the result is wanted
        coming = result if left % 2 == 0 else spare
        if coming is None:
            coming = allocate_memory(len(total))
        exchange.receive(coming, (child + top) % size)
        yield
        combine(total, coming)
        total = coming
        if left % 2 == 0:
            result = coming
        else:
            spare = coming
    if place:
        exchange.send(total, (parent(place) + top) % size)
        yield
    return total


def allreduce_doubling(
    exchange: Exchange, send: Message | None, receive: Message, operation: Operation
) -> Schedule:
    """Combine with a partner at twice the distance in each step."""
    if exchange.size == 2:
        yield from _pair(exchange, send, receive, operation, exchange.rank == 0, sends=True)
        return
    combine = combining(operation, receive.layout)
    room = Room(receive, send if send is not None else receive)
    total = yield from doubling(exchange, room.view, combine)
    if total is not room.view:
        room.view[:] = total
    room.settle()


def doubling(exchange: Exchange, total: memoryview, combine: Combine) -> Steps:
    """The combination of every member's `total`, which is overwritten; in it or elsewhere."""
    rank = exchange.rank
    places = Places(rank, exchange.size)
    spare = allocate_memory(len(total))
    if places.idle:
        exchange.swap(total, rank + 1, spare, rank + 1)
        yield
        return spare
    if places.paired:
        exchange.receive(spare, rank - 1)
        yield
        combine(spare, total)
    distance = 1
    while distance < places.power:
        other = places.place ^ distance
        partner = places.rank(other)
        exchange.swap(total, partner, spare, partner)
        yield
        if other < places.place:
            combine(spare, total)
        else:
            combine(total, spare)
            total, spare = spare, total
        distance *= 2
    if places.paired:
        exchange.send(total, rank - 1)
        yield
    return total


def allreduce_over_root(
    exchange: Exchange, send: Message | None, receive: Message, operation: Operation
) -> Schedule:
    """Reduce to rank 0, then broadcast."""
    yield from reduce(exchange, send, receive, operation, 0)
    yield from binomial(exchange, receive, 0)


def allreduce_ring(
    exchange: Exchange, send: Message | None, receive: Message, operation: Operation
) -> Schedule:
    """Reduce-scatter round a ring, then allgather; for operations that commute.

    Each piece is combined once, in the order of the ring, so all members get the same bits.
    """
    rank, size = exchange.rank, exchange.size
    if size == 1:
        if send is not None:
            copy_message(send, receive, rank)
        return
    combine = combining(operation, receive.layout)
    room = Room(receive, receive if send is None else None)
    pieces = _pieces(room.view, receive, size)
    mine = pieces if send is None else _pieces(to_send(send), receive, size)
    spare = allocate_memory(max(len(piece) for piece in pieces)) if send is None else None
    right, left = (rank + 1) % size, (rank - 1) % size
    out = mine[rank]
    for step in range(1, size):
        into = (rank - step) % size
        coming = pieces[into] if spare is None else spare[: len(pieces[into])]
        exchange.swap(out, right, coming, left)
        yield
        out = pieces[into]
        if spare is None:
            combine(mine[into], out)  # what came in is there already
        else:
            combine(coming, out)
    for step in range(size - 1):
        into = (rank - step) % size
        exchange.swap(out, right, pieces[into], left)
        yield
        out = pieces[into]
    room.settle()


def _pieces(view: memoryview, message: Message, parts: int) -> list[memoryview]:
    """Packed elements of a message in `parts` nearly equal pieces."""
    size = message.layout.size
    cuts = [message.count * part // parts * size for part in range(parts + 1)]
    return [view[cuts[part] : cuts[part + 1]] for part in range(parts)]


def reduce_linear(
    exchange: Exchange,
    send: Message | None,
    receive: Message | None,
    operation: Operation,
    root: int,
) -> Schedule:
    """Everybody's data straight to the root, which combines them from the last rank down."""
    rank, size = exchange.rank, exchange.size
    mine = send if send is not None else receive
    assert mine is not None, "every member has data"
    combine = combining(operation, mine.layout)
    if rank != root:
        exchange.send_message(mine, root)
        yield
        return
    assert receive is not None, "the root has room for the result"
    own = memoryview(mine.packed()) if send is None else to_send(mine)
    room = Room(receive)
    if rank == size - 1:
        room.view[:] = own
    else:
        exchange.receive(room.view, size - 1)
        yield
    spare = allocate_memory(len(own))
    for other in reversed(range(size - 1)):
        if other == rank:
            combine(own, room.view)
        else:
            exchange.receive(spare, other)
            yield
            combine(spare, room.view)
    room.settle()


def allreduce_linear(
    exchange: Exchange, send: Message | None, receive: Message, operation: Operation
) -> Schedule:
    """Straight to rank 0 and straight back."""
    yield from reduce_linear(exchange, send, receive, operation, 0)
    yield from linear(exchange, receive, 0)
