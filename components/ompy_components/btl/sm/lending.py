"""Messages that their receiver reads where they are, in the memory of a sender that looks on.

A record names a block with the header of such a message, its address and size; the block's payload
is empty. The state word of the block says who may do what:

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

from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.compiled import U64, Shown, U64View, ccall, cclass, cfunc
from ompy.data.request import Request
from ompy.frameworks.btl import SIZE_MAX, LentPayload
from ompy.net.memory.ring import CACHE_LINE

from ompy_components.btl.sm.endpoint import SmEndpoint
from ompy_components.btl.sm.layout import (
    FREE,
    LENT,
    LENT_ADDRESS,
    LENT_SIZE,
    READING,
    REFUSED,
    WITHDRAWN,
)
from ompy_components.btl.sm.pool import BlockPool
from ompy_components.btl.sm.remote import RemoteMemory

if TYPE_CHECKING:
    from ompy_components.btl.sm.module import SmModule

LENT_RECORD: Final = 2  # the kind of records that name such a block


@cclass
class Loan(Request):
    """A message that is lent: complete when its memory is the caller's again.

    Attributes:
        address: as peers name the memory.
        block: index of the block.
        endpoint: the receiver.
        header: bytes of the message's header, which are in the block.
        looks: how often the sender has found it unread.
        memory: with the message.
        start: place of the block in the segment.
    """

    address: U64
    block: int
    endpoint: SmEndpoint
    header: int
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
        loans: what it has lent, the oldest first.
    """

    _borrowed: SmPayload
    _memory: memoryview[int]
    _module: SmModule
    _patience: int
    _pool: BlockPool
    _remote: RemoteMemory
    _words: U64View
    loans: Shown[list[Loan]]
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
        self.loans = []

    def least(self, wanted: int) -> int:
        """The size from which on messages are lent; they never are where two could leave LENT."""
        one_step = raw.has_atomics() or self._module.context.network.virtual
        return wanted if wanted and one_step and self._remote.single_copy else SIZE_MAX

    # --- the sender

    @ccall
    def lend(self, endpoint: SmEndpoint, memory: memoryview, header: bytes) -> Loan | None:
        """Fill a block for a message; None if there is none, or nobody may read the memory."""
        address: U64 = self._remote.lent_address(memory)
        if not address:
            self._module.lend_least = SIZE_MAX
            return None
        block: int = self._pool.take()
        if block < 0:
            return None
        start: int = self._pool.place_of(block)
        loan: Loan = Loan.__new__(Loan)
        loan.reset()
        loan.address = address
        loan.block = block
        loan.endpoint = endpoint
        loan.header = len(header)
        loan.looks = 0
        loan.memory = memory
        loan.start = start
        raw.copy(self._memory, start + CACHE_LINE, header, 0, loan.header)
        at: int = start >> 3
        self._words[at + LENT_ADDRESS] = address
        self._words[at + LENT_SIZE] = raw.size(memory)
        self._words[at] = LENT
        self.loans.append(loan)
        return loan

    @ccall
    def settle(self) -> int:
        """Complete what was read, and take back what was not for long. How many are over."""
        loans = self.loans
        count: int = 0
        at: int = 0
        while at < len(loans):
            loan: Loan = loans[at]
            if self._is_over(loan):
                loans.pop(at)
                count += 1
                self._remote.end_loan(loan.address)
                loan.finish()  # which may lend again, behind the others
            else:
                at += 1
        return count

    @cfunc
    def _is_over(self, loan: Loan) -> bool:
        state: U64 = self._words[loan.start >> 3]
        if state == FREE:
            self._pool.give(loan.block)
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
            self._pool.give(loan.block)
        return departed

    @cfunc
    def _copy_now(self, loan: Loan) -> None:
        """Put the payload into the block, where the receiver finds it."""
        at: int = loan.start + CACHE_LINE + loan.header
        raw.copy(self._memory, at, loan.memory, 0, raw.size(loan.memory))
        raw.fence()
        self._pool.leave(loan.endpoint, loan.block)

    @ccall
    def may_sleep(self) -> bool:
        """Whether nothing is left to do here before a peer has done something."""
        loan: Loan
        for loan in self.loans:
            state: U64 = self._words[loan.start >> 3]
            if state == LENT and self._patience:
                loan.looks = self._patience
            elif state in (LENT, READING):
                continue
            return False
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
        if not self._remote.may_read(peer):
            raw.swap_if(self._memory, start, LENT, REFUSED)
            return None
        if not raw.swap_if(self._memory, start, LENT, READING):
            return None
        self._borrowed.name(peer, self._words[at + LENT_ADDRESS], self._words[at + LENT_SIZE])
        return self._borrowed
