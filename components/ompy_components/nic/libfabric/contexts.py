"""Contexts of work: memory that a provider may scribble on, and what is kept alive with it.

A provider that asks for FI_CONTEXT or FI_CONTEXT2 uses the memory at the context's address for its
own bookkeeping until the completion. Each slot is as long as fi_context2, and its address is what
the provider is given and hands back. With each slot goes a record of what the work was posted with,
used again like the slot, so whatever the provider may still touch is alive until the completion
has been read.

Source: reference ofi.md A6, B1.
"""

from __future__ import annotations

from typing import Any, Final

from ompy.compiled import U64, cclass, cfunc

SLOT: Final = 64  # bytes; libfabric: sizeof(struct fi_context2), eight pointers
BLOCK: Final = 256  # slots; arbitrary: as many as a queue has work entries, or a quarter of them


@cclass
class Work:
    """One slot, and what is under way in it.

    Attributes:
        address: of the slot.
        context: what the work was posted with.
        lent: its buffers, which cannot move meanwhile.
        region: that its descriptor is of.
        receives: its completion tells a size.
    """

    address: U64
    context: object
    lent: object
    receives: bool
    region: object
    __slots__ = tuple(__annotations__)

    def __init__(self, address: int) -> None:
        self.address = address
        self.context = None
        self.lent = None
        self.region = None
        self.receives = False


@cclass
class Contexts:
    """Slots for the work that reports to one completion queue.

    Attributes:
        free: slots that nobody has.
        held: those whose work is under way, by address.
    """

    _blocks: list[Any]
    _ffi: Any
    free: list[Work]
    held: dict[int, Work]
    __slots__ = tuple(__annotations__)

    def __init__(self, ffi: Any) -> None:
        self.free = []
        self.held = {}
        self._ffi = ffi
        self._blocks = []

    @cfunc
    def take_context(self) -> Work:
        """A slot for work that is about to be posted."""
        if not self.free:
            self._make_more()
        return self.free.pop()

    def _make_more(self) -> None:
        ffi = self._ffi
        block = ffi.new("char[]", (BLOCK + 1) * SLOT)
        self._blocks.append(block)
        start = int(ffi.cast("uintptr_t", block))
        start += -start % SLOT
        self.free.extend([Work(at) for at in range(start, start + BLOCK * SLOT, SLOT)])

    @cfunc
    def posted(
        self, work: Work, context: object, lent: object, region: object, receives: bool
    ) -> None:
        """The provider has it: keep all this until it gives the slot back."""
        work.context = context
        work.lent = lent
        work.region = region
        work.receives = receives
        self.held[work.address] = work

    @cfunc
    def ended(self, work: Work) -> object:
        """The provider has given the slot of `held` back. Returns the work's context."""
        context = work.context
        work.context = work.lent = work.region = None
        self.free.append(work)
        return context

    def uses(self, region: object) -> bool:
        """Whether work under way has `region` for its local memory."""
        return any(work.region is region for work in self.held.values())
