"""Nonblocking calls on a board: what each operation shows, and what it takes from the others.

Each is done in two steps, each of them when it is possible: show the own data when the slot is
free, and take what was waited for when it is there (`nonblocking_board.py`). A root that sends, or
a member that gives to a root, has no second step.

Broadcasts and blocks from `coll_sm_lend_least` on are lent: in a third step the call waits for
those who read them. What is not lent and has no room in a slot goes as messages under the call's
tag: of operations on blocks each block that is too large, as its reader sees by its size; the
others are then the next module's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ompy.compiled import U64, ccall, cclass, cfunc, recycled
from ompy.data.errors import ERR_TRUNCATE, MPIError
from ompy.data.message import Blocks, Message
from ompy.data.packed import lent_copy, to_lend, too_large
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import CollectiveRequest, Progression, Schedule
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.sm.blocks import ENTRY, table_size
from ompy_components.coll.sm.nonblocking_board import NonblockingBoard
from ompy_components.coll.sm.pending_call import MESSAGES, READERS, PendingCall, SlotsInTurn
from ompy_components.coll.sm.slots import (
    EQUAL,
    LENT,
    SENT,
    SHOWN,
    WORD,
    copy_block,
    copy_message,
    copy_to_block,
)

# operations, as numbers; arbitrary, but that all reductions come last
BARRIER: Final = 0
BCAST: Final = 1
SCATTER: Final = 2
GATHER: Final = 3
ALLGATHER: Final = 4
ALLTOALL: Final = 5
ALONG_EDGES: Final = 6  # `nonblocking_edges.py`; what follows, `nonblocking_reductions.py`
REDUCE: Final = 7
ALLREDUCE: Final = 8
SCAN: Final = 9
EXSCAN: Final = 10
REDUCE_SCATTER: Final = 11
KINDS: Final[dict[str, int]] = {
    "barrier": BARRIER,
    "bcast": BCAST,
    "scatter": SCATTER,
    "gather": GATHER,
    "allgather": ALLGATHER,
    "alltoall": ALLTOALL,
    "neighbor_allgather": ALONG_EDGES,
    "neighbor_alltoall": ALONG_EDGES,
    "reduce": REDUCE,
    "allreduce": ALLREDUCE,
    "scan": SCAN,
    "exscan": EXSCAN,
    "reduce_scatter": REDUCE_SCATTER,
}


@recycled
@cclass
class NonblockingCall(PendingCall):
    """One call of one member."""

    _arguments: tuple[Any, ...]
    _board: NonblockingBoard
    _communicator: Communicator
    _failure: MPIError | None
    _kept: list[memoryview] | None
    _kind: int
    _lent: list[int] | None
    _operation_name: str
    _rank: int
    _receives: list[tuple[Message, int]] | None
    _root: int
    _sends: list[tuple[memoryview, int]] | None
    _tag: int
    __slots__ = tuple(__annotations__)

    @ccall
    def prepare(
        self,
        communicator: Communicator,
        operation: str,
        arguments: tuple[Any, ...],
        tag: int,
        word: U64,
    ) -> None:
        """Say what is called. To be followed by `place` and `show_on`.

        Args:
            communicator: whose.
            operation: its name.
            arguments: as of the blocking call.
            tag: of its messages.
            word: of the call.
        """
        self.set_up()
        self._communicator = communicator
        self._operation_name = operation
        self._kind = KINDS[operation]
        self._arguments = arguments
        self._tag = tag
        self._rank = communicator.rank
        self._receives = None  # what goes as messages, if anything does
        self._sends = None
        self._kept = None  # what is lent, and where it is
        self._lent = None
        self._failure = None  # said when nobody reads or waits any more
        self.word = word
        self.first, self.end = 0, communicator.size
        kind: int = self._kind
        self._root = arguments[-1] if kind in (BCAST, SCATTER, GATHER, REDUCE) else -1
        if self._root >= 0 and kind in (BCAST, SCATTER) and self._rank != self._root:
            self.first, self.end = self._root, self._root + 1
        elif kind in (SCAN, EXSCAN):
            self.end = self._rank

    @ccall
    def place(self, turns: SlotsInTurn) -> None:
        """Say among which slots the next one is this call's."""
        turns.starts += 1
        number: U64 = turns.starts
        count: U64 = turns.count
        self.turns = turns
        self.number = number
        self.slot = turns.first + number % count
        self.before = number - count if number > count else 0

    @ccall
    def show_on(self, board: NonblockingBoard) -> None:
        """Begin: the memory is there."""
        self._board = board
        board.begin(self)

    def pass_on(self) -> None:
        """The next module does all of it."""
        assert self._communicator.coll is not None, "it was selected"
        plan = getattr(self._communicator.coll, f"schedule_{self._operation_name}")
        self._go_on_by_messages(plan, self._arguments)

    # --- the two steps

    @ccall
    def show_own(self) -> None:
        """Show this member's data."""
        kind: int = self._kind
        if kind == BARRIER:
            self._board.show(self, 0)
        elif kind == BCAST:
            self._show_broadcast(self._arguments[0])
        elif kind in (GATHER, ALLGATHER):
            self._show_block()
        elif kind == SCATTER:
            if self._rank == self._root:
                self._show_parts(self._arguments[0], self._arguments[1])
            else:
                self._board.show(self, 0)
        else:
            send = self._arguments[0]
            self._show_table(send if send is not None else self._arguments[1], send is None)

    @ccall
    def take_others(self) -> None:
        """Take what the others have shown."""
        kind: int = self._kind
        if kind == BCAST:
            self._take_broadcast(self._arguments[0])
        elif kind in (GATHER, ALLGATHER):
            self._take_blocks(self._arguments[0], self._arguments[1])
        elif kind == SCATTER:
            self._end_step(self._take_entry(self._root, self._arguments[1]))
        elif kind == ALLTOALL:
            self._take_table()
        else:
            self._end_step(None)

    @cfunc
    def _receive_later(self, target: Message, rank: int) -> None:
        """A block comes as a message."""
        if self._receives is None:
            self._receives = []
        self._receives.append((target, rank))

    @cfunc
    def _send_later(self, data: memoryview, rank: int) -> None:
        """A block goes as a message."""
        if self._sends is None:
            self._sends = []
        self._sends.append((data, rank))

    @cfunc
    def _end_step(self, problem: MPIError | None) -> None:
        """Nothing more is read here. What is left are messages and readers, if any.

        Args:
            problem: what is wrong with what came; others still get theirs.
        """
        self._board.finish(self)
        if self._sends or self._receives:
            self._failure = problem
            self._go_on_by_messages(self._exchange_blocks, ())
        elif self._lent is not None:
            self._failure = problem
            self.state = READERS
        elif problem is not None:
            raise problem
        else:
            self.finish()

    # --- what is lent

    @cfunc
    def _lend(self, piece: memoryview) -> int:
        """Lend memory until the readers are done. Returns its address."""
        if self._kept is None:
            self._kept = []
            self._lent = []
        address: int = self._board.lending.address_of(piece)
        kept, lent = self._kept, self._lent
        assert lent is not None, "it has as many"
        kept.append(piece)
        lent.append(address)
        return address

    @cfunc
    def _give_back(self) -> None:
        """Nobody reads any more what was lent."""
        lent = self._lent
        if lent is not None:
            for address in lent:
                self._board.lending.take_back(address)
            self._lent = self._kept = None

    @ccall
    def has_lent(self) -> bool:
        """Whether others read memory of this member."""
        return self._lent is not None

    @ccall
    def withdraw_lent(self) -> None:
        """Who still reads what was lent finds that it was taken away.

        If all are done, the next call in this slot may have lent something there by now.
        """
        if self.has_lent() and not self._board.was_read(self):
            self._board.lending.withdraw_lent(self.slot)
        self._give_back()

    @ccall
    def end_reading(self) -> None:
        """All have read what was lent."""
        self._give_back()
        if self._failure is not None:
            raise self._failure
        self.finish()

    # --- broadcast

    @cfunc
    def _show_broadcast(self, message: Message) -> None:
        board: NonblockingBoard = self._board
        if self._rank != self._root:
            board.show(self, 0)
            return
        size: int = message.count * message.layout.size
        if size >= board.least:
            lends: bool = board.lends(size)
            board.say_lent(self.slot, self._lend(to_lend(message)) if lends else 0)
            if lends:
                board.show(self, size)
                self._end_step(None)
                return
        if size > board.room:
            board.show(self, size)
            self._pass_on()
            return
        board.put(board.slot(self._rank, self.slot), message, size)
        board.show(self, size)
        self._end_step(None)

    @cfunc
    def _take_broadcast(self, message: Message) -> None:
        board: NonblockingBoard = self._board
        total: int = board.total(self._root, self.slot)
        room: int = message.count * message.layout.size
        address: U64 = board.offered(self._root, self.slot, total)
        if total > board.room and not address:
            self._pass_on()
        elif total > room:
            text = f"a broadcast of {total} bytes came for room for {room}"
            raise MPIError(ERR_TRUNCATE, text)
        elif address:
            self._end_step(board.read_lent(self, self._root, address, message, total))
        else:
            board.get(board.slot(self._root, self.slot), message, total)
            self._end_step(None)

    # --- blocks

    @cfunc
    def _show_block(self) -> None:
        """This member's only block: to the root, or to all."""
        board: NonblockingBoard = self._board
        rank: int = self._rank
        given: Message | None = self._arguments[0]
        if rank == self._root:
            board.show(self, 0)
            return
        if given is None:
            given = self._arguments[1].block(rank)
        assert given is not None, "its block is in place only where all are received"
        size: int = given.count * given.layout.size
        lends: bool = False
        if size >= board.least:
            lends = board.lends(size)
            board.say_lent(self.slot, self._lend(to_lend(given)) if lends else 0)
        if lends:
            self.readers = (self._root,) if self._root >= 0 else None
        elif size <= board.room:
            board.put(board.slot(rank, self.slot), given, size)
        else:
            block = to_lend(given)
            everybody = range(board.ranks) if self._root < 0 else (self._root,)
            self._sends = [(block, other) for other in everybody if other != rank]
        board.show(self, size)
        if self._root >= 0:
            self._end_step(None)

    @cfunc
    def _take_blocks(self, send: Message | None, receive: Blocks) -> None:
        """Everybody's only block."""
        board: NonblockingBoard = self._board
        rank: int
        problem: MPIError | None = None
        for rank in range(board.ranks):
            if rank == self._rank:
                if send is not None:
                    problem = copy_to_block(send, receive, rank) or problem
                continue
            size: int = board.total(rank, self.slot)
            address: U64 = board.offered(rank, self.slot, size)
            if size > board.room and not address:
                self._receive_later(receive.block(rank), rank)
            elif size > receive.room(rank):
                problem = problem or too_large(size, receive.block(rank), rank)
            elif address:
                found = board.read_lent(self, rank, address, receive.block(rank), size)
                problem = problem or found
            elif size:
                board.get_block(board.slot(rank, self.slot), receive, rank, size)
        self._end_step(problem)

    @cfunc
    def _show_table(self, blocks: Blocks, changing: bool) -> None:
        """A block for each of the others; `changing`: the memory is about to be received into."""
        board: NonblockingBoard = self._board
        rank: int
        each: int = blocks.each()
        if board.has_equal_room(each, board.room) and not board.lends(each):
            board.put_equal(board.slot(self._rank, self.slot), blocks, each)
            board.show(self, EQUAL + each)
            return
        slot: int = board.table(self._rank, self.slot)
        place: int = table_size(board.ranks)
        total: int = place
        for rank in range(board.ranks):
            if rank != self._rank:
                total += blocks.room(rank)
        way: int = self._way_of(total)
        for rank in range(board.ranks):
            size: int = 0 if rank == self._rank else blocks.room(rank)
            where: U64 = place
            if size and way == SHOWN:
                board.put_block(slot + place, blocks, rank, size)
            elif size:
                block: Message = blocks.block(rank)
                data = lent_copy(block) if changing else to_lend(block)
                if way == LENT:
                    where = self._lend(data)
                else:
                    self._send_later(data, rank)
            board.set_word(slot + WORD + rank * ENTRY, where)
            board.set_word(slot + WORD + rank * ENTRY + WORD, size)
            place += size
        board.set_word(slot, way)
        if way == LENT:
            board.say_lent(self.slot, 0)  # nothing is withdrawn
        board.show(self, total)

    @cfunc
    def _way_of(self, total: int) -> int:
        """How the blocks of a table come that take so many bytes with it."""
        board: NonblockingBoard = self._board
        table: int = table_size(board.ranks)
        each: int = (total - table) // (board.ranks - 1) if board.ranks > 1 else 0
        if total > board.room:
            return LENT if board.lending.possible() else SENT
        return LENT if board.lends(each) else SHOWN

    @cfunc
    def _show_parts(self, send: Blocks, receive: Message | None) -> None:
        """The root's blocks."""
        problem: MPIError | None = None
        self._show_table(send, False)
        if receive is not None:
            problem = copy_message(send.block(self._rank), receive, self._rank)
        self._end_step(problem)

    @cfunc
    def _take_table(self) -> None:
        """Everybody's block for this member."""
        send: Blocks | None = self._arguments[0]
        receive: Blocks = self._arguments[1]
        rank: int
        problem: MPIError | None = None
        found: MPIError | None
        for rank in range(self._board.ranks):
            found = None
            if rank != self._rank:
                found = self._take_entry_to_block(rank, receive)
            elif send is not None:
                found = copy_block(send, receive, rank)
            problem = problem or found
        self._end_step(problem)

    @cfunc
    def _take_entry(self, rank: int, target: Message) -> MPIError | None:
        """This member's block of another's. Returns what is wrong with it."""
        board: NonblockingBoard = self._board
        total: int = board.total(rank, self.slot)
        if total >= EQUAL:
            return board.take_equal(board.slot(rank, self.slot), rank, total - EQUAL, target)
        slot: int = board.table(rank, self.slot)
        at: int = slot + WORD + self._rank * ENTRY
        place: U64 = board.word(at)
        size: int = board.word(at + WORD)
        way: U64 = board.word(slot)
        if size >= board.least:
            board.lending.possible()  # it is said by who asks
        if not size:
            return None
        if way == SENT:
            self._receive_later(target, rank)
        elif size > target.count * target.layout.size:
            return too_large(size, target, rank)
        elif way == LENT:
            return board.read_lent(self, rank, place, target, size)
        else:
            board.get(slot + place, target, size)
        return None

    @cfunc
    def _take_entry_to_block(self, rank: int, receive: Blocks) -> MPIError | None:
        """The same into one of the blocks."""
        board: NonblockingBoard = self._board
        total: int = board.total(rank, self.slot)
        if total >= EQUAL:
            size: int = total - EQUAL
            return board.take_equal_block(board.slot(rank, self.slot), rank, size, receive)
        slot: int = board.table(rank, self.slot)
        at: int = slot + WORD + self._rank * ENTRY
        size = board.word(at + WORD)
        if board.word(slot) != SHOWN or size > receive.room(rank):
            return self._take_entry(rank, receive.block(rank))
        if size:
            board.get_block(slot + board.word(at), receive, rank, size)
        return None

    # --- messages

    @cfunc
    def _pass_on(self) -> None:
        """It has no room here."""
        self._board.finish(self)
        self.pass_on()

    @cfunc
    def _go_on_by_messages(self, plan: Callable[..., Schedule], arguments: tuple[Any, ...]) -> None:
        exchange = Exchange(self._communicator, self._tag)
        exchange.word = self.word
        exchange.whole = self._kind >= REDUCE
        self.state = MESSAGES
        request = Progression(exchange, plan(exchange, *arguments)).begin()
        self.waits_on = request
        request.notify(partial(self._end_messages, request))

    def _end_messages(self, request: CollectiveRequest) -> None:
        """As the messages have ended, so has the call."""
        self.problem = request.problem
        if request.error:
            self.withdraw_lent()
            self.fail(request.error, request.detail)
        elif self._lent is not None:
            self.waits_on = None
            self._sends = self._receives = None  # a persistent request may begin it again
            self._board.wait_for_readers(self)
        elif self._failure is not None:
            self.fail(self._failure.code, self._failure.detail)
        else:
            self.finish()

    def _exchange_blocks(self, exchange: Exchange) -> Schedule:
        """The blocks that had no room."""
        for target, rank in self._receives or ():
            exchange.receive_message(target, rank)
        for data, rank in self._sends or ():
            exchange.send(data, rank)
        yield


@cclass
class AbsentCall(NonblockingCall):
    """A call that this member takes no part in: its slot is to say so."""

    __slots__ = ()

    @ccall
    def show_own(self) -> None:
        """Say so; nothing is read."""
        self._board.show(self, 0)
        self._board.finish(self)
        self.finish()

    def pass_on(self) -> None:
        """There is no memory; the others are told by messages."""
        self.finish()
