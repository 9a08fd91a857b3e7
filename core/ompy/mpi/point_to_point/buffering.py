"""Buffered sends: the memory the user attached for them, and what of it is in use.

A message takes a region of `BSEND_OVERHEAD` bytes more than its size, the first that is free and
large enough. The PML copies into it what it could not hand to a BTL at once; the region is free
again when the request is complete. A small message is copied elsewhere, and takes a region only if
it does not leave at once.
"""

from __future__ import annotations

import _thread
from functools import partial
from typing import Any, Final

from ompy import raw
from ompy.compiled import Shown, ccall, cclass, cfunc
from ompy.data.buffered import BufferedConvertor, buffered
from ompy.data.constants import PROC_NULL
from ompy.data.convertor import Convertor, allocate_memory
from ompy.data.errors import ERR_BUFFER
from ompy.data.request import Request
from ompy.frameworks.pml import BUFFERED
from ompy.mpi.buffers.markers import BUFFER_AUTOMATIC
from ompy.mpi.constants import BSEND_OVERHEAD
from ompy.mpi.errors import MPIException
from ompy.mpi.state import CommState, World

UNLIMITED: Final = -1
# bytes; arbitrary: so few are copied in less time than it takes to keep account of the lent memory
COPIED_MOST: Final = 1 << 13


class Region:
    """A part of the attached memory.

    Attributes:
        start, size: which bytes.
        sent: the message that needs it; None while that is being begun.
    """

    __slots__ = ("sent", "size", "start")

    def __init__(self, start: int, size: int, sent: Request | None = None) -> None:
        self.start = start
        self.size = size
        self.sent = sent


@cclass
class SendBuffer:
    """Memory lent for buffered sends.

    Attributes:
        lent: what the user attached.
        capacity: its bytes, or UNLIMITED.
    """

    _lock: Any
    _regions: list[Region]
    _view: memoryview[int]
    capacity: Shown[int]
    lent: Shown[Any]
    __slots__ = tuple(__annotations__)

    def __init__(self, lent: Any) -> None:
        self._lock = _thread.allocate_lock()
        self._regions = []  # in use, by their place in memory
        self._view = memoryview(b"")
        if lent is BUFFER_AUTOMATIC or lent is None:
            self.lent = BUFFER_AUTOMATIC
            self.capacity = UNLIMITED
            return
        self.lent = lent
        memory = _as_memory(lent)
        if memory.readonly:
            raise BufferError("message: cannot attach a read-only buffer")
        self._view = _bytes_of(memory)
        self.capacity = memory.nbytes

    @ccall
    def send(self, state: CommState, convertor: Convertor, target: int, tag: int) -> None:
        """Send a message; its memory is the user's again when this returns.

        Raises:
            MPIError: ERR_BUFFER, there is no room for it; or the peer cannot be reached.
        """
        size: int = convertor.size
        if size <= COPIED_MOST and not self._regions and self._has_room(size):
            kept: BufferedConvertor = buffered(convertor, allocate_memory)
            sent: Request = state.pml.isend(state.communicator, kept, target, tag, BUFFERED)
            if not sent.complete:
                kept.keep(0)  # for a PML that does not do so itself
                with self._lock:
                    self._regions.insert(0, Region(0, size + BSEND_OVERHEAD, sent))
            return
        self._send_lent(state, convertor, target, tag)

    @cfunc
    def _send_lent(self, state: CommState, convertor: Convertor, target: int, tag: int) -> None:
        """Send a message of which the attached memory has the copy, if one is needed."""
        size: int = convertor.size
        region = self._reserve(size)
        # no way back from the request, through the convertor, to the region: that were a cycle
        lend = (
            allocate_memory
            if self.capacity == UNLIMITED
            else partial(_part, self._view, region.start)
        )
        kept: BufferedConvertor = buffered(convertor, lend)
        try:
            sent: Request = state.pml.isend(state.communicator, kept, target, tag, BUFFERED)
            if not sent.complete:
                kept.keep(0)  # for a PML that does not do so itself
        except BaseException:
            self._free(region)
            raise
        if sent.complete:
            self._free(region)
        else:
            region.sent = sent

    @cfunc
    def _has_room(self, size: int) -> bool:
        """Whether a message fits where nothing is in use."""
        return self.capacity == UNLIMITED or size + BSEND_OVERHEAD <= self.capacity

    def _free(self, region: Region) -> None:
        with self._lock:
            self._regions.remove(region)

    def _reserve(self, size: int) -> Region:
        """Room for a message.

        Raises:
            MPIException: ERR_BUFFER, there is none.
        """
        need = size + BSEND_OVERHEAD
        with self._lock:
            if self._regions:
                self._regions = [
                    used for used in self._regions if used.sent is None or not used.sent.complete
                ]
            start = place = 0
            for used in self._regions:
                if self.capacity != UNLIMITED and used.start - start >= need:
                    break
                start = used.start + used.size
                place += 1
            if self.capacity != UNLIMITED and start + need > self.capacity:
                used_bytes = sum(used.size for used in self._regions)
                raise MPIException(
                    ERR_BUFFER,
                    f"a message of {size} bytes needs {need} bytes of the attached buffer in one "
                    f"piece; {used_bytes} of its {self.capacity} are in use: attach a larger one",
                )
            region = Region(start, need)
            self._regions.insert(place, region)
            return region

    def under_way(self) -> list[Request]:
        """The messages that still need the memory."""
        with self._lock:
            sent = [used.sent for used in self._regions if used.sent is not None]
        return [operation for operation in sent if not operation.complete]

    def flush(self, world: World) -> None:
        """Return when all messages have been sent."""
        for operation in self.under_way():
            world.engine.wait(operation)


_memory: Any = None


def _as_memory(lent: Any) -> Any:
    """What was lent as `MPI.buffer`."""
    global _memory  # noqa: PLW0603 - it is imported when it is first asked for
    if _memory is None:
        from ompy.mpi.buffers import memory

        _memory = memory
    return lent if isinstance(lent, _memory.buffer) else _memory.buffer(lent)


def _bytes_of(memory: Any) -> memoryview:
    view: memoryview | None = raw.numbers(memory)
    if view is not None:
        return view
    from ompy.mpi.buffers.access import acquire

    return acquire(memory, True).view


def _part(view: memoryview, start: int, size: int) -> memoryview:
    return view[start : start + size]


@ccall
def attached(state: CommState) -> SendBuffer:
    """The memory for buffered sends in a communicator: its own, its session's, or the rank's.

    Raises:
        MPIException: ERR_BUFFER, there is none.
    """
    base = state.world.base
    of_rank = None if base is None else base.buffers
    found: SendBuffer | None = state.buffers or state.world.buffers or of_rank
    if found is None:
        raise MPIException(
            ERR_BUFFER, "no buffer is attached for buffered sends: call MPI.Attach_buffer first"
        )
    return found


def attach_buffer(owner: CommState | World, lent: Any) -> None:
    """Lend memory for buffered sends to a communicator, or to the whole rank.

    Raises:
        MPIException: ERR_BUFFER, there is some already.
        BufferError: it cannot be written to.
    """
    if owner.buffers is not None:
        raise MPIException(ERR_BUFFER, "a buffer is attached already: detach it first")
    owner.buffers = SendBuffer(lent)


def detach_buffer(owner: CommState | World, world: World) -> Any:
    """Give the memory back when all messages in it have been sent; None if there is none."""
    held: SendBuffer | None = owner.buffers
    if held is None:
        return None
    held.flush(world)
    owner.buffers = None
    return held.lent


def flush_buffer(owner: CommState | World, world: World) -> None:
    """Return when all buffered messages have been sent."""
    if owner.buffers is not None:
        owner.buffers.flush(world)


def begin_flush(owner: CommState | World, world: World) -> Request:
    """An operation that completes when all buffered messages of now have been sent.

    Where all that can be is tried, the world says when a program is told of that.
    """
    flushed = Request()
    flushed.source = PROC_NULL
    with world.engine.lock:
        waiting = [] if owner.buffers is None else owner.buffers.under_way()
        left = len(waiting)

        def sent() -> None:
            nonlocal left
            left -= 1
            if not left:
                flushed.finish()

        if not left:
            flushed.finish()
        for operation in waiting:
            operation.notify(sent)
    line = world.context.direct
    return flushed if line is None else line.watch_begun(0, flushed)
