"""The nonblocking calls of one communicator: their memory, their numbers, and what waits for it.

The memory is made with the first call, and that in the background, as a nonblocking call waits for
nobody: rank 0 has it and tells the others, who map it. Calls that are begun meanwhile are shown
when it is there, in their order. Where one member cannot map it, all calls go as messages.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import ref

from ompy.compiled import U64, Shown, ccall, cclass, cfunc
from ompy.data.request import Request
from ompy.engine.lock import RankLock
from ompy.frameworks.coll import NEIGHBOURHOODS, TAG_NONBLOCKING_MEMORY
from ompy.frameworks.collectives.shared_memory import SharedMemory, begin_to_share
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.sm.blocks import table_size
from ompy_components.coll.sm.nonblocking_board import NonblockingBoard, nonblocking_size
from ompy_components.coll.sm.nonblocking_calls import NonblockingCall
from ompy_components.coll.sm.nonblocking_edges import EdgeCall

PERSISTENT: Final = 128  # slots of persistent requests; arbitrary: only those in use take memory
ONCE: Final = -1  # number of what is no persistent request
NO_SLOT: Final = -2  # number of one for which there is no slot
WITH_TABLES: Final = ("scatter", "alltoall")


@cclass
class NonblockingCalls:
    """What one member has begun."""

    _agreement: Request | None
    _begun: int
    _board: Shown[NonblockingBoard | None]
    _communicator: Communicator
    _depth: int
    _early: list[NonblockingCall]
    _kept: int
    _last: dict[int, Any]
    _lock: RankLock
    _refused: Shown[bool]
    _room: int
    _shared: SharedMemory | None
    _starts: dict[int, int]
    _tables: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, communicator: Communicator, depth: int, room: int) -> None:
        """Nothing yet.

        Args:
            communicator: whose calls they are.
            depth: calls that may be under way at a time without one waiting for another.
            room: bytes of a member's slot.
        """
        self._communicator = communicator
        self._depth = depth
        self._lock = communicator.context.engine.lock
        self._room = room
        self._tables = table_size(communicator.size) <= room
        self._begun = 0
        self._kept = 0
        self._starts = {}
        self._last = {}  # of a persistent request, to be begun once more while it is there
        self._early = []
        self._agreement = None  # on the memory, while it is under way
        self._shared = None
        self._board = None
        self._refused = False

    def keep_call(self) -> int:
        """The number of a persistent request; `NO_SLOT` if there is none for it."""
        self._kept += 1
        return self._kept - 1 if self._kept <= PERSISTENT else NO_SLOT

    @ccall
    def begin_call(
        self, operation: str, arguments: tuple[Any, ...], tag: int, word: U64, kept: int
    ) -> Request | None:
        """Begin a call.

        Args:
            operation: its name.
            arguments: as of the blocking call.
            tag: of its messages.
            word: of the call.
            kept: number of the persistent request; `ONCE` for none.

        Returns:
            What completes with it; None if it has to go as messages, for all members.
        """
        unserved = operation in WITH_TABLES and not self._tables
        if self._refused or unserved or kept == NO_SLOT:
            return None
        self._lock.acquire(True)
        try:
            call: NonblockingCall = self._prepared(operation, arguments, tag, word, kept)
            self._place(call, kept)
            if self._board is None:
                self._early.append(call)
                self._share()
                call.waits_on = self._agreement
            else:
                call.show_on(self._board)
        finally:
            self._lock.release()
        return call

    @cfunc
    def _prepared(
        self, operation: str, arguments: tuple[Any, ...], tag: int, word: U64, kept: int
    ) -> NonblockingCall:
        """A call that has not begun: that of the persistent request's last start, or a new one."""
        call: NonblockingCall | None = None
        if kept != ONCE:
            last = self._last.get(kept)
            if last is not None:
                call = last()
                if call is not None and call.set_up_again():
                    return call
        if operation in NEIGHBOURHOODS:
            call = EdgeCall.__new__(EdgeCall)
        else:
            call = NonblockingCall.__new__(NonblockingCall)
        assert call is not None, "it was made"
        call.prepare(self._communicator, operation, arguments, tag, word)
        if kept != ONCE:
            self._last[kept] = ref(call)
        return call

    @cfunc
    def _place(self, call: NonblockingCall, kept: int) -> None:
        """The slot of a call, and its number there."""
        number: int
        if kept == ONCE:
            self._begun += 1
            number = self._begun
            call.place(number % self._depth, number, max(number - self._depth, 0))
            return
        number = self._starts.get(kept, 0) + 1
        self._starts[kept] = number
        call.place(self._depth + kept, number, number - 1)

    def _share(self) -> None:
        if self._shared is not None:
            return
        slots = self._depth + PERSISTENT
        size = nonblocking_size(self._communicator.size, slots, self._room)
        self._shared, request = begin_to_share(self._communicator, size, TAG_NONBLOCKING_MEMORY)
        self._agreement = request

        def agreed() -> None:
            self._have_agreed(request)

        request.notify(agreed)

    def _have_agreed(self, request: Request) -> None:
        """The memory is there, or is not."""
        assert self._shared is not None, "it was asked for"
        early, self._early = self._early, []
        self._agreement = None
        for call in early:
            call.waits_on = None
        view = self._shared.view
        if request.error:
            for call in early:
                call.fail(request.error, request.detail)
        elif view is None:
            for call in early:
                call.pass_on()
        else:
            slots = self._depth + PERSISTENT
            self._board = self._kind_of_board()(self._communicator, view, slots, self._room)
            for call in early:
                call.show_on(self._board)
        self._refused = self._board is None

    def _kind_of_board(self) -> type[NonblockingBoard]:
        """That of a traced rank tells what it does."""
        if not self._communicator.context.trace.active:
            return NonblockingBoard
        from ompy_components.coll.sm.traced_board import TracedNonblockingBoard

        return TracedNonblockingBoard

    def close(self) -> None:
        """Give the memory back."""
        self._board = None
        if self._shared is not None:
            self._shared.close()
