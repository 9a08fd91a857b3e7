"""Memory with a slot for each member, and how messages get into a slot and out of it.

Along the edges of a topology a slot has the target of each edge, then the equal blocks, or the one
for all of them. If they are not equal, or are lent, it has the way in which the blocks come, the
number of edges, then for each edge the target, and place and bytes of its block, then the blocks,
if they are not lent.
"""

from __future__ import annotations

from typing import Final

from ompy import raw
from ompy.compiled import U64, U64View, ccall, cclass, cfunc
from ompy.data.errors import ERR_TOPOLOGY, MPIError
from ompy.data.message import Blocks, Message
from ompy.data.packed import different_amounts, to_lend, to_send, too_large
from ompy.engine.base import Poller
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.net.memory.streaming import Streaming

# values of the way in which the blocks of a table come
SHOWN: Final = 0  # they lie behind the table
LENT: Final = 1  # the places are addresses
SENT: Final = 2  # as messages
WORD: Final = 8  # bytes
LINE: Final = 64  # bytes; the cache line of x86 and most aarch64
LINE_WORDS: Final = LINE // 8
PARKED: Final = LINE_WORDS  # the word of member 0 among all words of a memory: whether it sleeps
# values of a parked word
AWAKE: Final = 0
ASLEEP: Final = 1  # wake me when something was shown, or a result is there
HEAD: Final = 32  # bytes; arbitrary: what is behind it is aligned for any number
# beside the bytes of each, where a slot says its total: equal blocks, one for each member, behind
# the head or from the second line on, and no table
EQUAL: Final = 1 << 62
# the same along edges: whether it is one block for all, and from which bit on their number stands
SAME: Final = 1 << 61
NUMBER: Final = 40
SIZE: Final = (1 << 40) - 1  # the bits of the bytes of each; arbitrary: all below `NUMBER`
assert (SIZE + 1) >> NUMBER == 1
MOST_EDGES: Final = 1 << 20  # arbitrary: what has room between the two
EDGES: Final = 16  # bytes before the rows of edges: the way, and how many there are
# bytes; arbitrary: elements with gaps are packed through the cache, without a convertor
PACKED: Final = 2048
EDGE: Final = 24  # bytes of a row: target, the block's place and size, which are words


@ccall
def lines_of(words: int) -> int:
    """Bytes of the cache lines that so many words take."""
    return -(-words // LINE_WORDS) * LINE


def board_size(ranks: int, depth: int, fragment: int) -> int:
    """Bytes of the memory of a communicator."""
    return LINE + lines_of(ranks) + ranks * LINE + 2 * (ranks + 1) * depth * slot_size(fragment)


@ccall
def slot_size(fragment: int) -> int:
    """Bytes of a slot with its head."""
    return LINE + -(-fragment // LINE) * LINE


@cclass
class SlotMemory(Poller):
    """What both boards have in common.

    Attributes:
        memory: all of it.
        rank, ranks: of the member that looks at it, and how many there are.
        streaming: how it copies into the memory.
    """

    _words: U64View
    memory: memoryview[int]
    rank: int
    ranks: int
    streaming: Streaming
    __slots__ = tuple(__annotations__)

    @ccall
    def word(self, at: int) -> U64:
        """The word at byte `at`, a multiple of 8."""
        return self._words[at >> 3]

    @ccall
    def set_word(self, at: int, value: U64) -> None:
        """Store a word at byte `at`, a multiple of 8."""
        self._words[at >> 3] = value

    @ccall
    def disarm(self) -> None:
        """Say that this member is awake.

        Only if the word says else: the others read it in each call, as their own beside it.
        """
        if self._words[PARKED + self.rank] != AWAKE:
            self._words[PARKED + self.rank] = AWAKE

    @ccall
    def line(self, rank: int) -> int:
        """Where a member's words about lending begin, in bytes: three, as `lending.py` says."""
        raise NotImplementedError

    @ccall
    def say_lent(self, number: int, address: U64) -> None:
        """Say where this member's data are, before they are shown; 0 if they are not lent.

        Args:
            number: of the fragment, or the slot of a nonblocking call.
            address: in this member's process.
        """
        raise NotImplementedError

    @ccall
    def lent_by(self, rank: int, number: int) -> U64:
        """Where the data are that a member has shown; 0 if they are not lent."""
        raise NotImplementedError

    @ccall
    def move(self, at: int, start: int, size: int) -> None:
        """Bytes of the memory from `start` on to byte `at` of it."""
        raw.copy(self.memory, at, self.memory, start, size)

    @ccall
    def copy_in(self, at: int, view: memoryview, start: int, size: int) -> None:
        """Bytes of `view` from `start` on to byte `at` of the memory."""
        self.streaming.copy(self.memory, at, view, start, size)

    @ccall
    def copy_out(self, at: int, view: memoryview, start: int, size: int) -> None:
        """Bytes of the memory from `at` on to byte `start` of `view`."""
        raw.copy(view, start, self.memory, at, size)

    @ccall
    def bytes_of(self, at: int, size: int) -> memoryview:
        """Bytes of the memory."""
        return self.memory[at : at + size]

    @ccall
    def put(self, at: int, source: Message, size: int) -> None:
        """The bytes of a message, `size` of them, to byte `at`."""
        start: int = source.place()
        if not size:
            return
        if start >= 0:
            self.copy_in(at, source.memory, start, size)
        elif not (self._is_all_of(source, size) and source.pack_at(self.memory, at)):
            self.streaming.pack_part(source.convertor(), 0, self.memory, at, size)

    @cfunc
    def _is_all_of(self, source: Message, size: int) -> bool:
        """Whether a message is little, and no more than so many bytes."""
        return size <= PACKED and size == source.count * source.layout.size

    @ccall
    def get(self, at: int, target: Message, size: int) -> None:
        """The bytes of a message, `size` of them, from byte `at` on."""
        start: int = target.place()
        if not size:
            return
        if start >= 0:
            self.copy_out(at, target.memory, start, size)
        elif not target.unpack_from(self.memory, at, size):
            target.convertor().unpack(0, self.bytes_of(at, size))

    @ccall
    def put_block(self, at: int, blocks: Blocks, rank: int, size: int) -> None:
        """As `put` of the block of a rank."""
        start: int = blocks.place(rank)
        if start >= 0:
            self.copy_in(at, blocks.memory, start, size)
        else:
            self.put(at, blocks.block(rank), size)

    @ccall
    def get_block(self, at: int, blocks: Blocks, rank: int, size: int) -> None:
        """As `get` of the block of a rank."""
        start: int = blocks.place(rank)
        if start >= 0:
            self.copy_out(at, blocks.memory, start, size)
        else:
            self.get(at, blocks.block(rank), size)

    # --- equal blocks

    @ccall
    def equal(self, slot: int, size: int) -> int:
        """Where equal blocks of so many bytes begin, as `first_byte` says.

        Args:
            slot: where a member's data begin behind the head of a slot.
            size: of one block.
        """
        return first_byte(slot, size * self.ranks)

    @ccall
    def put_equal(self, slot: int, blocks: Blocks, size: int) -> None:
        """Write equal blocks, all but that of this member.

        Args:
            slot: as of `equal`.
            blocks: one for each member.
            size: of one block.
        """
        at: int = self.equal(slot, size)
        rank: int
        if size:
            for rank in range(self.ranks):
                if rank != self.rank:
                    self.put_block(at + rank * size, blocks, rank, size)

    @ccall
    def take_equal(self, slot: int, rank: int, size: int, target: Message) -> MPIError | None:
        """This member's one of the equal blocks of another.

        Args:
            slot: as of `equal`, of the other.
            rank: the other.
            size: of one block.
            target: room.

        Returns:
            What is wrong with it.
        """
        if size > target.count * target.layout.size:
            return too_large(size, target, rank)
        self.get(self.equal(slot, size) + self.rank * size, target, size)
        return None

    @ccall
    def take_equal_block(self, slot: int, rank: int, size: int, receive: Blocks) -> MPIError | None:
        """The same into the block of that rank."""
        if size > receive.room(rank):
            return too_large(size, receive.block(rank), rank)
        if size:
            self.get_block(self.equal(slot, size) + self.rank * size, receive, rank, size)
        return None

    @ccall
    def has_equal_room(self, size: int, room: int) -> bool:
        """Whether equal blocks, of which there are none if `size` is negative, fit a slot."""
        return 0 <= size * self.ranks <= room

    # --- along edges

    @ccall
    def lay_edges(
        self, slot: int, send: Message | None, blocks: Blocks | None, edges: Neighbours, total: int
    ) -> None:
        """Write a table of blocks with their targets, and the blocks.

        Args:
            slot: where it begins.
            send: the block for all edges; None where each has its own.
            blocks: those.
            edges: along which.
            total: as `bytes_along` says.
        """
        row: int = slot + EDGES
        place: int = bytes_of_edges(len(edges.sending))
        size: int = total - place  # of the one block for all
        each: int
        for each in edges.sending:
            if blocks is not None:
                size = blocks.room(each)
            row = self._enter_edge(row, edges.targets[each], place, size)
            if blocks is not None and size:
                self.put_block(slot + place, blocks, each, size)
                place += size
        if send is not None:
            self.put(slot + place, send, size)
        self.set_word(slot, SHOWN)
        self.set_word(slot + WORD, len(edges.sending))

    @ccall
    def lay_equal_edges(
        self, slot: int, send: Message | None, blocks: Blocks | None, edges: Neighbours, room: int
    ) -> int:
        """Write the targets and their blocks, if these are equal and have room.

        Args:
            slot: where a member's data begin behind the head of a slot.
            send: the block for all edges; None where each has its own.
            blocks: those.
            edges: along which.
            room: bytes of a slot.

        Returns:
            What the slot has to say as its total; 0: nothing is written.
        """
        number: int = len(edges.sending)
        said: int = number << NUMBER
        size: int = -1
        if send is not None:
            size = send.count * send.layout.size
            said |= SAME
        elif blocks is not None:
            size = blocks.each()
        if size < 0 or not 0 < number < MOST_EDGES or bytes_of_equal_edges(said + size) > room:
            return 0
        said += size
        row: int = first_byte(slot, bytes_of_equal_edges(said))
        place: int = row + number * WORD
        each: int
        for each in edges.sending:
            self.set_word(row, edges.targets[each])
            row += WORD
            if blocks is not None and send is None and size:
                self.put_block(place, blocks, each, size)
                place += size
        if send is not None:
            self.put(place, send, size)
        return EQUAL + said

    @ccall
    def take_equal_edge(
        self, slot: int, said: int, rank: int, turn: int, receive: Blocks, each: int
    ) -> MPIError | None:
        """As `take_edge`, of equal blocks for this member.

        Args:
            slot: as of `lay_equal_edges`, of the other.
            said: its total, beside `EQUAL`.
            rank: the other.
            turn: the edge's number among those from it to this member.
            receive: room.
            each: which of it.
        """
        number: int = (said & ~SAME) >> NUMBER
        size: int = said & SIZE
        row: int = first_byte(slot, bytes_of_equal_edges(said))
        place: int = row + number * WORD
        own: U64 = self.rank
        passed: int = 0
        for _ in range(number):
            if self.word(row) == own:
                if passed == turn:
                    break
                passed += 1
            row += WORD
            place += 0 if said & SAME else size
        else:
            return _missing_edge(rank, self.rank, passed)
        if size > receive.room(each) or (receive.must_fill and size != receive.room(each)):
            return _wrong_size(size, receive, each, rank)
        if size:
            self.get_block(place, receive, each, size)
        return None

    @ccall
    def lend_edges(
        self,
        slot: int,
        send: Message | None,
        blocks: Blocks | None,
        edges: Neighbours,
        at: list[int],
    ) -> None:
        """Write a table of blocks with their targets, which are lent.

        Args:
            slot: where it begins.
            send: the block for all edges; None where each has its own.
            blocks: those.
            edges: along which.
            at: the addresses: of the one block, or of the block for each edge.
        """
        row: int = slot + EDGES
        size: int = 0 if send is None else send.count * send.layout.size
        index: int = 0
        each: int
        for each in edges.sending:
            if blocks is not None:
                size = blocks.room(each)
            row = self._enter_edge(row, edges.targets[each], at[index], size)
            index += blocks is not None
        self.set_word(slot, LENT)
        self.set_word(slot + WORD, len(edges.sending))

    @cfunc
    def _enter_edge(self, row: int, target: int, place: U64, size: int) -> int:
        """Fill a row of a table. Returns where the next one is."""
        self.set_word(row, target)
        self.set_word(row + WORD, place)
        self.set_word(row + 2 * WORD, size)
        return row + EDGE

    @ccall
    def find_edge(self, slot: int, own: U64, turn: int) -> int:
        """Where the row of the edge of that number to a member is; a negative number if nowhere.

        Args:
            slot: where the table begins.
            own: the member.
            turn: the edge's number among those to it.

        Returns:
            The byte, or -1 less the edges that there are to it.
        """
        row: int = slot + EDGES
        end: int = row + self.word(slot + WORD) * EDGE
        passed: int = 0
        while row < end:
            if self.word(row) == own:
                if passed == turn:
                    return row
                passed += 1
            row += EDGE
        return -1 - passed

    @ccall
    def wrong_edge(
        self, row: int, rank: int, own: int, receive: Blocks, each: int
    ) -> MPIError | None:
        """What is wrong with the block of an edge.

        Args:
            row: as `find_edge` has found it.
            rank: the member whose table it is.
            own: the other.
            receive: room.
            each: which of it.
        """
        if row < 0:
            return _missing_edge(rank, own, -1 - row)
        size: int = self.word(row + 2 * WORD)
        return _wrong_size(size, receive, each, rank)

    @ccall
    def take_edge(
        self, slot: int, rank: int, own: int, turn: int, receive: Blocks, each: int
    ) -> MPIError | None:
        """What a member has shown for another, for its edge of that number.

        Args:
            slot: where its table begins.
            rank: the member.
            own: the other.
            turn: the edge's number among those from the one to the other.
            receive: room.
            each: which of it.

        Returns:
            What is wrong with it.
        """
        row: int = self.find_edge(slot, own, turn)
        problem = self.wrong_edge(row, rank, own, receive, each)
        if problem is None:
            size: int = self.word(row + 2 * WORD)
            if size:
                self.get_block(slot + self.word(row + WORD), receive, each, size)
        return problem


def _wrong_size(size: int, receive: Blocks, each: int, rank: int) -> MPIError | None:
    """What is wrong with so many bytes that came from a member for a block."""
    room: int = receive.room(each)
    if receive.must_fill and size != room:
        return different_amounts(size, rank, room)
    return too_large(size, receive.block(each), rank) if size > room else None


def _missing_edge(rank: int, own: int, passed: int) -> MPIError:
    text = f"rank {rank} has {passed} edges to rank {own}, where one more is received from"
    return MPIError(ERR_TOPOLOGY, text)


@ccall
def first_byte(slot: int, size: int) -> int:
    """Where so many bytes begin in a slot.

    Little comes with the cache line that is looked at. Much takes long to write, and whoever looks
    at that line would take it away in the middle.

    Args:
        slot: where a member's data begin behind the head of a slot.
        size: of all that is shown there.
    """
    return slot if size <= LINE - HEAD else slot - HEAD + LINE


@ccall
def bytes_of_equal_edges(said: int) -> int:
    """Bytes of the targets and of the blocks behind them, of what a slot says beside `EQUAL`."""
    number: int = (said & ~SAME) >> NUMBER
    size: int = said & SIZE
    return number * WORD + (size if said & SAME else number * size)


@ccall
def pieces_along(
    send: Message | None, blocks: Blocks | None, edges: Neighbours
) -> list[memoryview]:
    """The one block for all edges, or that of each, in one piece each."""
    if send is not None:
        return [to_lend(send)]
    pieces: list[memoryview] = []
    each: int
    if blocks is not None:
        for each in edges.sending:
            pieces.append(to_lend(blocks.block(each)))
    return pieces


@ccall
def bytes_of_edges(number: int) -> int:
    """Bytes of the table of so many edges."""
    return EDGES + number * EDGE


@ccall
def edges_are_large(total: int, number: int, room: int, least: int) -> bool:
    """Whether blocks are lent where that is possible.

    Args:
        total: bytes of the blocks with their table, as `bytes_along` says.
        number: of edges.
        room: bytes of a slot, which has to have room for the table.
        least: bytes of a block, on average, from which on it is lent though there is room for it.
    """
    table: int = bytes_of_edges(number)
    if not number or table > room:
        return False
    return total > room or (total - table) // number >= least


@ccall
def bytes_along(send: Message | None, blocks: Blocks | None, edges: Neighbours) -> int:
    """Bytes of the table of edges and of the blocks behind it."""
    total: int = bytes_of_edges(len(edges.sending))
    each: int
    if send is not None:
        total += send.count * send.layout.size
    elif blocks is not None:
        for each in edges.sending:
            total += blocks.room(each)
    return total


@ccall
def copy_message(source: Message, target: Message, rank: int) -> MPIError | None:
    """A member's message to itself.

    Returns:
        What is wrong with it: the target has no room for it.
    """
    size: int = source.count * source.layout.size
    if size > target.count * target.layout.size:
        return too_large(size, target, rank)
    start: int = source.place()
    to: int = target.place()
    if size and start >= 0 and to >= 0:
        raw.copy(target.memory, to, source.memory, start, size)
    elif size:
        target.store(to_send(source))
    return None


@ccall
def copy_block(send: Blocks, receive: Blocks, rank: int) -> MPIError | None:
    """As `copy_message` of the blocks of a rank."""
    size: int = send.room(rank)
    start: int = send.place(rank)
    to: int = receive.place(rank)
    if start >= 0 and to >= 0 and size <= receive.room(rank):
        raw.copy(receive.memory, to, send.memory, start, size)
        return None
    return copy_message(send.block(rank), receive.block(rank), rank)


@ccall
def copy_to_block(send: Message, receive: Blocks, rank: int) -> MPIError | None:
    """As `copy_message` to the block of a rank."""
    size: int = send.count * send.layout.size
    start: int = send.place()
    to: int = receive.place(rank)
    if start >= 0 and to >= 0 and size <= receive.room(rank):
        raw.copy(receive.memory, to, send.memory, start, size)
        return None
    return copy_message(send, receive.block(rank), rank)
