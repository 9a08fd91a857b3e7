"""Messages that their receiver reads where they are, in the memory of a sender that looks on.

A record names a block, whose first line has the state, the header of such a message, its address
and its size. The rest of the block is empty. The state says who may do what:

| state | who sets it | what is so |
|---|---|---|
| LENT | the sender | the receiver may read |
| READING | the receiver, from LENT | it reads; the sender's memory is in use |
| FREE | the receiver | it has read: the message is complete, the block the sender's |
| REFUSED | the receiver, from LENT | the kernel does not let it read: the sender is to copy |
| WITHDRAWN | the sender, from LENT | it copies, as the receiver was not there soon enough |
| TAKEN | the sender | the payload is in the block, which is one like any other from now on |

LENT is left by one step of the processor (`raw.swap_if`), as both sides may leave it. So no sender
waits for a receiver that computes: a message of the eager sizes stays one that is buffered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy import raw
from ompy.compiled import U64, Shown, U64View, ccall, cclass, cfunc
from ompy.data.request import Request
from ompy.frameworks.btl import SIZE_MAX
from ompy.frameworks.btl_base.lent_payload import LentPayload
from ompy.net.memory.ring import CACHE_LINE

from ompy_components.btl.sm.endpoint import SmEndpoint
from ompy_components.btl.sm.layout import (
    FREE,
    LENT,
    LENT_ADDRESS,
    LENT_HEADER,
    LENT_HEADER_MOST,
    LENT_SIZE,
    READING,
    REFUSED,
    WITHDRAWN,
)
from ompy_components.btl.sm.pool import BlockPool
from ompy_components.btl.sm.remote import RemoteMemory

if TYPE_CHECKING:
    from ompy_components.btl.sm.module import SmModule


@cclass
class Loan(Request):
    """A message that is lent: complete when its memory is the caller's again.

    Attributes:
        address: as peers name the memory.
        after: the next one that the rank has lent.
        block: index of the block.
        endpoint: the receiver.
        header: of the message.
        looks: how often the sender has found it unread.
        memory: with the message.
        start: place of the block in the segment.
    """

    address: U64
    after: Loan | None
    block: int
    endpoint: SmEndpoint
    header: bytes
    looks: int
    memory: memoryview[int]
    start: int
    __slots__ = tuple(__annotations__)


@cclass
class SmPayload(LentPayload):
    """What a peer lends, while its record is looked at."""

    _address: U64
    _peer: SmEndpoint | None
    _remote: RemoteMemory
    __slots__ = tuple(__annotations__)

    def __init__(self, remote: RemoteMemory) -> None:
        self._remote = remote
        self._peer = None
        self._address = self.size = 0

    @ccall
    def name(self, peer: SmEndpoint, address: U64, size: int) -> None:
        """Say where it is."""
        self._peer = peer
        self._address = address
        self.size = size

    @ccall
    def read(self, view: memoryview) -> bool:
        """One copy by the kernel."""
        peer = self._peer
        assert peer is not None, "there is a record"
        return self._remote.read_lent(peer, self._address, view)


@cclass
class Lending:
    """What one rank lends and borrows.

    Attributes:
        loans: the oldest one of what it has lent and not back yet, which leads to the others.
    """

    _borrowed: SmPayload
    _last: Loan | None
    _memory: Shown[memoryview[int]]
    _module: SmModule
    _patience: int
    _pool: BlockPool
    _remote: RemoteMemory
    _words: U64View
    loans: Shown[Loan | None]
    __slots__ = tuple(__annotations__)

    def __init__(
        self, module: SmModule, memory: memoryview, pool: BlockPool, patience: int
    ) -> None:
        """Nothing is lent.

        Args:
            module: that lends.
            memory: the segment.
            pool: this rank's blocks.
            patience: looks at a message before it is taken back; 0 for any number.
        """
        self._module = module
        self._memory = memory
        self._pool = pool
        self._words = memory.cast("Q")
        self._patience = patience
        self._remote = module.remote
        self._borrowed = SmPayload(module.remote)
        self.loans = self._last = None

    def least(self, wanted: int) -> int:
        """The size from which on messages are lent.

        Never where two could leave LENT, nor where a receiver has to be given a core before it
        reads: a sender that does not wait for that runs ahead of it.
        """
        context = self._module.context
        one_step = raw.has_atomics() and context.engine.has_core
        able = (one_step or context.network.virtual) and self._remote.single_copy
        return wanted if wanted and able else SIZE_MAX

    # --- the sender

    @ccall
    def lend(self, endpoint: SmEndpoint, memory: memoryview, header: bytes) -> Loan | None:
        """Fill a block for a message; None if there is none, or nobody may read the memory."""
        begin: int = len(header)
        if begin > LENT_HEADER_MOST:
            return None
        block: int = self._pool.take_block()
        if block < 0:
            return None
        address: U64 = self._remote.lent_address(memory)
        if not address:
            self._pool.give_block(block)
            self._module.lend_least = SIZE_MAX
            return None
        start: int = self._pool.place_of(block)
        loan: Loan = Loan.__new__(Loan)
        loan.reset()
        loan.address = address
        loan.block = block
        loan.endpoint = endpoint
        loan.header = header
        loan.looks = 0
        loan.memory = memory
        loan.start = start
        raw.copy(self._memory, start + LENT_HEADER, header, 0, begin)
        at: int = start >> 3
        self._words[at + LENT_ADDRESS] = address
        self._words[at + LENT_SIZE] = raw.size(memory)
        self._words[at] = LENT
        loan.after = None
        last = self._last
        if last is None:
            self.loans = loan
        else:
            last.after = loan
        self._last = loan
        return loan

    @ccall
    def settle_loans(self) -> int:
        """Complete what was read, and take back what was not for long. How many are over."""
        count: int = 0
        before: Loan | None = None
        loan: Loan | None = self.loans
        while loan is not None:
            following: Loan | None = loan.after
            if self._is_over(loan):
                if before is None:
                    self.loans = following
                else:
                    before.after = following
                if following is None:
                    self._last = before
                count += 1
                self._end(loan)
                if following is None:
                    break  # what was lent meanwhile is new
            else:
                before = loan
            loan = following
        return count

    @cfunc
    def _end(self, loan: Loan) -> None:
        self._remote.end_loan(loan.address)
        loan.finish()  # which may lend again, behind the others

    @cfunc
    def _is_over(self, loan: Loan) -> bool:
        state: U64 = self._words[loan.start >> 3]
        if state == FREE:
            time: int = self._pool.read_for(loan.block)
            loan.endpoint.choice.took(True, time, raw.size(loan.memory))
            self._pool.give_block(loan.block)
            return True
        departed: bool = loan.endpoint.proc.departed != ""
        if state == LENT:
            loan.looks += 1
            if not departed and (not self._patience or loan.looks < self._patience):
                return False
            if not raw.swap_if(self._memory, loan.start, LENT, WITHDRAWN):
                return False  # the receiver was faster
            self._copy_now(loan)
            return True
        if state == REFUSED:
            loan.endpoint.lends = False
            self._copy_now(loan)
            return True
        if departed:  # while it was reading
            self._pool.give_block(loan.block)
        return departed

    @cfunc
    def _copy_now(self, loan: Loan) -> None:
        """Put the payload into the block, where the receiver finds it."""
        at: int = loan.start + CACHE_LINE
        begin: int = len(loan.header)
        raw.copy(self._memory, at, loan.header, 0, begin)
        raw.copy(self._memory, at + begin, loan.memory, 0, raw.size(loan.memory))
        raw.fence()
        self._pool.leave_block(loan.endpoint, loan.block, 0, 0)

    @ccall
    def may_sleep(self) -> bool:
        """Whether nothing is left to do here before a peer has done something."""
        loan: Loan | None = self.loans
        while loan is not None:
            state: U64 = self._words[loan.start >> 3]
            if state == LENT and self._patience:
                loan.looks = self._patience  # the next look takes it back
                return False
            if state not in (LENT, READING):
                return False
            loan = loan.after
        return True

    # --- the receiver

    @ccall
    def claim(self, peer: SmEndpoint, start: int) -> LentPayload | None:
        """Begin to read what a record lends, which is not in its block.

        Args:
            peer: the sender.
            start: place of the block.

        Returns:
            The payload, until the block is marked free; None if it is to come into the block.
        """
        at: int = start >> 3
        if not self._remote.may_copy(peer):
            raw.swap_if(self._memory, start, LENT, REFUSED)
            return None
        if not raw.swap_if(self._memory, start, LENT, READING):
            return None
        self._borrowed.name(peer, self._words[at + LENT_ADDRESS], self._words[at + LENT_SIZE])
        return self._borrowed
