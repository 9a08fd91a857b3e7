"""The nonblocking calls of one communicator: their memory, their numbers, and what waits for it.

The memory is made with the first call, and that in the background, as a nonblocking call waits for
nobody: rank 0 has it and tells the others, who map it. Calls that are begun meanwhile are shown
when it is there, in their order. Where one member cannot map it, all calls go as messages.
"""

from __future__ import annotations

from typing import Any, Final

from ompy.compiled import U64, Shown, ccall, cclass, cfunc
from ompy.data.request import Request
from ompy.engine.lock import RankLock
from ompy.frameworks.coll import NEIGHBOURHOODS, TAG_NONBLOCKING_MEMORY, PreparedCall
from ompy.frameworks.collectives.call_order import REFUSED
from ompy.frameworks.collectives.shared_memory import SharedMemory, begin_to_share
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.sm.blocks import table_size
from ompy_components.coll.sm.nonblocking_board import NonblockingBoard, nonblocking_size
from ompy_components.coll.sm.nonblocking_calls import KINDS, REDUCE, AbsentCall, NonblockingCall
from ompy_components.coll.sm.nonblocking_edges import EdgeCall
from ompy_components.coll.sm.nonblocking_reductions import ReductionCall
from ompy_components.coll.sm.pending_call import SlotsInTurn

PERSISTENT: Final = 64  # requests that have slots; arbitrary: only those in use take memory
# slots of each, as a root may start it again before the others have read. measured: a root that
# has to wait gives its core away
TURNS: Final = 16
ONCE: Final = -1  # number of what is no persistent request
NO_SLOT: Final = -2  # number of one for which there is no slot
MOST: Final = (1 << 62) - 1  # bytes; arbitrary: more than any message has
_REDUCE: Final = REDUCE  # a number in C
WITH_TABLES: Final = ("scatter", "alltoall")


@cclass
class NonblockingCalls:
    """What one member has begun."""

    _agreement: Request | None
    _board: Shown[NonblockingBoard | None]
    _communicator: Communicator
    _depth: int
    _early: list[NonblockingCall]
    _kept: list[SlotsInTurn]
    _least: int
    _left_out: list[tuple[SlotsInTurn, int]]
    _lock: RankLock
    _once: SlotsInTurn
    _refused: Shown[bool]
    _room: int
    _shared: SharedMemory | None
    _tables: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, communicator: Communicator, depth: int, room: int, least: int) -> None:
        """Nothing yet.

        Args:
            communicator: whose calls they are.
            depth: calls that may be under way at a time without one waiting for another.
            room: bytes of a member's slot.
            least: bytes from which on data are lent where that is possible; 0 for none.
        """
        self._communicator = communicator
        self._depth = depth
        self._lock = communicator.context.engine.lock
        self._room = room
        self._least = min(least, room + 1)
        self._tables = table_size(communicator.size) <= room
        self._once = SlotsInTurn(0, depth)
        self._kept = []
        self._left_out = []
        self._early = []
        self._agreement = None  # on the memory, while it is under way
        self._shared = None
        self._board = None
        self._refused = False

    def keep_call(self) -> int:
        """The number of a persistent request; `NO_SLOT` if there is none for it."""
        number = len(self._kept)
        if number == PERSISTENT:
            return NO_SLOT
        self._kept.append(SlotsInTurn(self._depth + number * TURNS, TURNS))
        return number

    def prepare_call(
        self, operation: str, arguments: tuple[Any, ...], tag: int, word: U64, kept: int
    ) -> PreparedCall | None:
        """What starts a persistent request; None if its starts have to go as messages."""
        if self._unserved(operation) or kept == NO_SLOT:
            return None
        return StartedAgain(self, self._kept[kept], operation, arguments, tag, word)

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
        if self._refused or kept == NO_SLOT or self._unserved(operation):
            return None
        slot: SlotsInTurn | None = None
        if kept != ONCE:
            slot = self._kept[kept]
        call: NonblockingCall = self.make_call(operation, arguments, tag, word)
        return call if self.begin_made(call, slot) else None

    def leave_out(self) -> Request | None:
        """Others make a persistent request: number it as they do, and be there for its memory.

        Returns:
            What completes when that has been agreed on; None if it was.
        """
        number: int = self.keep_call()
        if self._refused or number == NO_SLOT:
            return None
        word: U64 = self._communicator.order.word | REFUSED
        with self._lock:
            self._left_out.append((self._kept[number], word))
            self._share()
            self._show_left_out()
        return self._agreement

    def _show_left_out(self) -> None:
        """Have all slots of requests that this member takes no part in say so."""
        if self._board is not None:
            for turns, word in self._left_out:
                self._board.refuse_all(turns, word)
            self._left_out.clear()

    def take_no_part(self, operation: str) -> Request | None:
        """Have a slot say that this member takes no part in the call that was begun last.

        Returns:
            What completes when it does; None if others hear of it by messages.
        """
        if self._refused or self._unserved(operation):
            return None
        order = self._communicator.order
        call = AbsentCall.__new__(AbsentCall)
        call.prepare(self._communicator, "barrier", (), order.tag(), order.word | REFUSED)
        return call if self.begin_made(call, None) else None

    @cfunc
    def _unserved(self, operation: str) -> bool:
        """Whether an operation is not served: its tables have no room in a slot."""
        return not self._tables and operation in WITH_TABLES

    @ccall
    def make_call(
        self, operation: str, arguments: tuple[Any, ...], tag: int, word: U64
    ) -> NonblockingCall:
        """A call that has not begun."""
        call: NonblockingCall
        if operation in NEIGHBOURHOODS:
            call = EdgeCall.__new__(EdgeCall)
        elif KINDS[operation] >= _REDUCE:
            call = ReductionCall.__new__(ReductionCall)
        else:
            call = NonblockingCall.__new__(NonblockingCall)
        call.prepare(self._communicator, operation, arguments, tag, word)
        return call

    @ccall
    def begin_made(self, call: NonblockingCall, kept: SlotsInTurn | None) -> bool:
        """Begin a call; false if it has to go as messages.

        Args:
            call: that has not begun.
            kept: of a persistent request; None for a call that is begun once.
        """
        if self._refused:
            return False
        self._lock.acquire(True)
        try:
            call.place(self._once if kept is None else kept)
            if self._board is None:
                self._early.append(call)
                self._share()
                call.waits_on = self._agreement
            else:
                call.show_on(self._board)
        finally:
            self._lock.release()
        return True

    def _share(self) -> None:
        if self._shared is not None:
            return
        slots = self._depth + PERSISTENT * TURNS
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
            slots = self._depth + PERSISTENT * TURNS
            self._board = self._kind_of_board()(self._communicator, view, slots, self._room)
            self._board.lend(self._shared.copy if self._least else None, self._least or MOST)
            self._show_left_out()
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
        if self._board is not None:
            self._board.close()
        self._board = None
        if self._shared is not None:
            self._shared.close()


@cclass
class StartedAgain(PreparedCall):
    """A persistent request: one call, begun again and again while nobody else refers to it."""

    _arguments: tuple[Any, ...]
    _call: NonblockingCall | None
    _calls: NonblockingCalls
    _operation: str
    _slot: SlotsInTurn
    _tag: int
    _word: U64
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        calls: NonblockingCalls,
        slot: SlotsInTurn,
        operation: str,
        arguments: tuple[Any, ...],
        tag: int,
        word: U64,
    ) -> None:
        """Not started yet; the arguments are as those of `NonblockingCalls.begin_call`."""
        self._calls = calls
        self._slot = slot
        self._operation = operation
        self._arguments = arguments
        self._tag = tag
        self._word = word
        self._call = None

    @ccall
    def start(self) -> Request | None:
        """Begin the call once more; None if it has to go as messages, for all members."""
        call = self._call
        if call is None or not call.set_up_again():
            call = self._calls.make_call(self._operation, self._arguments, self._tag, self._word)
            self._call = call
        return call if self._calls.begin_made(call, self._slot) else None
