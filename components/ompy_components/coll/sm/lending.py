"""Blocks that are too large to be shown: their owner lends them, the others read them in place.

The owner says where a block is in its process, and keeps it until the readers are done; they copy
it by the kernel, straight to where it is wanted. Whether that is allowed each member tries with all
others once: it reads the first bytes of the board in their memory, and says on the board that it
could. Blocks are lent only when everybody has said so. Until then, and where the kernel refuses,
they go as messages.

An owner that cannot wait, because a member has failed or an exception came, takes back what it has
lent: its caller may change that memory, while a member that comes late still finds the address. So
the owner says so in its slot, and a reader looks there after it has read.
"""

from __future__ import annotations

from typing import Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.convertor import scratch_memory
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.data.message import Message
from ompy.frameworks.collectives.shared_memory import PROOF_SIZE, finds_proof
from ompy.net.base import LinkError
from ompy.net.memory.process_copy import ProcessCopy

from ompy_components.coll.sm.slots import SlotMemory

# bytes of a member's words about lending, by place; arbitrary: one word each
PROCESS: Final = 0  # for the kernel's copy, and one more, as 0 is none
ADDRESS: Final = 8  # arbitrary: the next; of this memory in that process
READS: Final = 16  # arbitrary: the next; 1: this member may read the memory of all others

WITHDRAWN: Final = 1  # in place of an address: arbitrary, no memory begins there


@cclass
class Lending:
    """A member's reading of the others' memory, and their reading of its own."""

    _board: SlotMemory
    _copy: ProcessCopy | None
    _everybody: bool
    _forgets: bool
    _own: int
    _refused: bool
    _tried: list[bool]
    __slots__ = tuple(__annotations__)

    def __init__(self, board: SlotMemory, copy: ProcessCopy | None) -> None:
        """Say where this member has the board.

        Args:
            board: what the members share.
            copy: between processes; None to send messages.
        """
        self._board = board
        self._copy = copy
        self._everybody = False
        self._refused = copy is None
        self._forgets = copy is not None and copy.forgets
        self._tried = [rank == board.rank for rank in range(board.ranks)]
        self._own = 0
        if copy is not None:
            self._own = copy.address_of(board.memory)
            at: int = board.line(board.rank)
            board.set_word(at + ADDRESS, self._own)
            board.set_word(at + PROCESS, copy.identity + 1)

    def close(self) -> None:
        """Nobody reads this member's memory any more."""
        self.take_back(self._own)

    @ccall
    def possible(self) -> bool:
        """Whether all members may read each other's memory."""
        if self._everybody:
            return True
        if self._refused:
            return False
        if not self._try():
            return False
        board: SlotMemory = self._board
        rank: int
        for rank in range(board.ranks):
            if not board.word(board.line(rank) + READS):
                return False
        self._everybody = True
        return True

    @cfunc
    def _try(self) -> bool:
        """Try the members that have not been tried. Whether all may be read."""
        assert self._copy is not None, "it is not refused"
        board: SlotMemory = self._board
        rank: int
        for rank in range(board.ranks):
            if self._tried[rank]:
                continue
            at: int = board.line(rank)
            if not board.word(at + PROCESS):
                return False  # it has not come so far
            process: int = board.word(at + PROCESS) - 1
            proof = board.memory[:PROOF_SIZE]
            if not finds_proof(self._copy, process, board.word(at + ADDRESS), proof):
                self._refused = True
                return False
            self._tried[rank] = True
        board.set_word(board.line(board.rank) + READS, 1)
        return True

    @ccall
    def address_of(self, view: memoryview) -> int:
        """Where others find `view`, until `take_back`. The caller keeps the memory."""
        assert self._copy is not None, "lending is possible"
        return self._copy.address_of(view)

    @ccall
    def take_back(self, address: int) -> None:
        """Nobody reads any more what was lent."""
        if self._forgets and self._copy is not None:
            self._copy.forget(address)

    @ccall
    def withdraw_lent(self, number: int) -> None:
        """Say that nobody may read what this member has lent in a fragment: it does not wait."""
        self._board.say_lent(number, WITHDRAWN)
        raw.fence()  # before the owner of the memory writes to it

    @ccall
    def read_lent(self, rank: int, number: int, address: U64, view: memoryview) -> None:
        """Copy what a member has lent in a fragment.

        Raises:
            LinkError: it cannot be read: the member has ended, or has taken it back; `view` then
                has any bytes.
        """
        self._read(rank, address, view)
        raw.fence()
        if self._board.lent_by(rank, number) == WITHDRAWN:
            raise LinkError("it has left this call, as another member has failed")

    @cfunc
    def _read(self, rank: int, address: U64, view: memoryview) -> None:
        assert self._copy is not None, "lending is possible"
        board: SlotMemory = self._board
        process: int = board.word(board.line(rank) + PROCESS) - 1
        self._copy.read(process, address, view)

    @ccall
    def read_message(
        self, rank: int, number: int, address: U64, target: Message, size: int
    ) -> MPIError | None:
        """What a member has lent into a message, which has room for it. Returns what is wrong."""
        start: int = target.place()
        room = target.memory[start : start + size] if start >= 0 else scratch_memory(size)
        try:
            self.read_lent(rank, number, address, room)
        except LinkError as problem:
            return MPIError(ERR_PROC_FAILED, f"the block of rank {rank} cannot be read: {problem}")
        if start < 0:
            target.store(room)
        return None
