"""The blocks of one rank, in which its large fragments lie until their receivers have read them."""

from __future__ import annotations

from ompy.compiled import Shown, U64View, ccall, cclass, cfunc

from ompy_components.btl.sm.endpoint import SmEndpoint
from ompy_components.btl.sm.layout import FREE, READ_FOR, TAKEN, SharedLayout


@cclass
class UnreadBlock:
    """A block that was left to its receiver.

    Attributes:
        block: index.
        receiver: who reads it.
        size: bytes of its message; 0 where nobody asks how long that takes.
        time: nanoseconds that the sender took for it.
    """

    block: int
    receiver: SmEndpoint
    size: int
    time: int
    __slots__ = tuple(__annotations__)


@cclass
class BlockPool:
    """Which blocks are in use. The state word of each says what of; a reader sets it to FREE.

    Attributes:
        starved: a block was wanted when there was none.
    """

    _begin: int
    _free: Shown[list[int]]
    _size: int
    _unread: Shown[list[UnreadBlock]]
    _words: U64View
    starved: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, words: memoryview, layout: SharedLayout, place: int, blocks: int) -> None:
        """All are free.

        Args:
            words: of the segment.
            layout: of the segment.
            place: of this rank in it.
            blocks: how many it has.
        """
        self._words = words
        self._size = layout.block_size
        self._begin = layout.block(place, 0)
        self._free = list(range(blocks))
        self._unread = []
        self.starved = False

    @ccall
    def place_of(self, block: int) -> int:
        """Byte offset of a block of this rank."""
        return self._begin + block * self._size

    @ccall
    def is_read(self, block: int) -> bool:
        """Whether nobody needs any more what is in a block."""
        return self._words[self.place_of(block) >> 3] == FREE

    @ccall
    def take_block(self) -> int:
        """A block that nobody uses, or -1.

        One that was just read is best: it is in the cache. Nobody waits for those that were left,
        so they are looked at here and nowhere else.
        """
        unread = self._unread
        if unread:
            oldest: UnreadBlock = unread[0]
            if self.is_read(oldest.block):
                del unread[0]
                self._say_time(oldest)
                self.starved = False
                return oldest.block
        if not self._free:
            self._reclaim()
        self.starved = not self._free
        return -1 if self.starved else self._free.pop()

    @ccall
    def give_block(self, block: int) -> None:
        """Nobody will read a block any more."""
        self._free.append(block)
        self.starved = False

    @cfunc
    def _say_time(self, left: UnreadBlock) -> None:
        if left.size:
            time: int = left.time + self.read_for(left.block)
            left.receiver.choice.took(False, time, left.size)

    @ccall
    def read_for(self, block: int) -> int:
        """Nanoseconds that the receiver took for a block that it has read."""
        return self._words[(self.place_of(block) >> 3) + READ_FOR]

    @ccall
    def leave_block(self, endpoint: SmEndpoint, block: int, size: int, time: int) -> None:
        """A block is full, and nobody waits for its receiver.

        Args:
            endpoint: the receiver.
            block: index.
            size: bytes of its message, if it matters how long that takes; else 0.
            time: nanoseconds that this rank took for it.
        """
        self._words[self.place_of(block) >> 3] = TAKEN
        left: UnreadBlock = UnreadBlock.__new__(UnreadBlock)
        left.block = block
        left.receiver = endpoint
        left.size = size
        left.time = time
        self._unread.append(left)

    @ccall
    def any_read(self) -> bool:
        """Whether there is one of those that were left that can be taken back."""
        left: UnreadBlock
        for left in self._unread:
            block: int = left.block
            if self.is_read(block):
                return True
        return False

    @cfunc
    def _reclaim(self) -> None:
        """Take back all that were left and that nobody will read any more."""
        still: list[UnreadBlock] = []
        left: UnreadBlock
        for left in self._unread:
            if self.is_read(left.block) or left.receiver.proc.departed:
                self._free.append(left.block)
            else:
                still.append(left)
        self._unread = still
