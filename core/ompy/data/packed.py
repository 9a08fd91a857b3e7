"""Messages as packed bytes: in the user's memory where they lie there in one piece."""

from __future__ import annotations

from ompy import raw
from ompy.compiled import ccall
from ompy.data.convertor import allocate_memory, scratch_memory, stream_part
from ompy.data.errors import ERR_TRUNCATE, MPIError
from ompy.data.message import Message
from ompy.data.operation import Operation


@ccall
def in_place(message: Message) -> memoryview | None:
    """The message's bytes in the user's memory, or None when they are not in one piece."""
    start: int = message.place()
    if start < 0:
        return None
    size: int = message.count * message.layout.size
    memory = message.memory
    return memory if size == raw.size(memory) else memory[start : start + size]


@ccall
def to_send(message: Message) -> memoryview:
    """The message's packed bytes, to be read only: a copy if they are not in one piece."""
    view = in_place(message)
    return view if view is not None else packed_copy(message)


def packed_copy(message: Message) -> memoryview:
    """A copy of the message's packed bytes."""
    copy = scratch_memory(message.size)
    message.pack_into(copy)
    return copy


def to_lend(message: Message) -> memoryview:
    """What `to_send` gives, for other cores to read: a copy goes past this core's cache."""
    view = in_place(message)
    return view if view is not None else lent_copy(message)


def lent_copy(message: Message) -> memoryview:
    """A copy of the message's packed bytes, for other cores to read."""
    copy = scratch_memory(message.size)
    stream_part(message.convertor(), 0, copy, 0, message.size)
    return copy


class Room:
    """Packed memory in which a message is received or made.

    Attributes:
        message: where the bytes are wanted in the end.
        view: the message's own memory when it is in one piece, else memory beside it.
    """

    __slots__ = ("_beside", "message", "view")

    def __init__(self, message: Message, data: Message | None = None) -> None:
        """Make room for `message`, with the bytes of `data` in it (which may be `message`)."""
        view = in_place(message)
        self.message = message
        self._beside = view is None
        self.view = view if view is not None else allocate_memory(message.size)
        if data is not None and (self._beside or data is not message):
            pack_into(self.view, data)

    def settle(self) -> None:
        """Bring the bytes to where they are wanted."""
        if self._beside:
            self.message.store(self.view)


@ccall
def pack_into(view: memoryview, message: Message) -> None:
    """Pack a message into `view`."""
    if message.size > len(view):
        raise MPIError(ERR_TRUNCATE, f"{message.size} bytes are for room for {len(view)} bytes")
    message.pack_into(view)


@ccall
def combine_packed(target: Message, data: memoryview, operation: Operation) -> None:
    """Combine as many packed elements into a message, by an operation that is defined for them."""
    size: int = raw.size(data)
    start: int = target.place()
    if start >= 0:
        operation.combine(target.layout, data, 0, target.memory, start, size)
        return
    packed: memoryview = scratch_memory(size)
    target.pack_into(packed)
    operation.combine(target.layout, data, 0, packed, 0, size)
    target.store(packed)


@ccall
def store_received(view: memoryview, message: Message, source: int) -> None:
    """Unpack into a message what came from `source`, as a receive would.

    Raises:
        MPIError: ERR_TRUNCATE, it is more than the message has room for.
    """
    if len(view) > message.size:
        raise too_large(len(view), message, source)
    message.store(view)


def too_large(size: int, message: Message, source: int) -> MPIError:
    """The error of a block of `size` bytes from `source` that a message has no room for."""
    return MPIError(
        ERR_TRUNCATE,
        f"a block of {size} bytes from rank {source} arrived for room for {message.size} bytes",
    )


def different_amounts(size: int, source: int, room: int) -> MPIError:
    """The error of a reduction to which `source` gives `size` bytes, where `room` are wanted."""
    return MPIError(
        ERR_TRUNCATE,
        f"the members give different amounts of data to one reduction: "
        f"{size} bytes came from rank {source} where {room} are wanted",
    )


@ccall
def copy_message(source: Message, target: Message, rank: int) -> None:
    """A rank's message to itself.

    Raises:
        MPIError: ERR_TRUNCATE, it is more than the target has room for.
    """
    size: int = source.count * source.layout.size
    start: int = source.place()
    to: int = target.place()
    if start >= 0 and to >= 0 and size <= target.count * target.layout.size:
        raw.copy(target.memory, to, source.memory, start, size)
    else:
        store_received(to_send(source), target, rank)
