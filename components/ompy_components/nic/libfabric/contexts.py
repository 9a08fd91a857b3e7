"""Contexts of work: memory that a provider may scribble on, and what is kept alive with it.

A provider that asks for FI_CONTEXT or FI_CONTEXT2 uses the memory at the context's address for its
own bookkeeping until the completion. Each slot is as long as fi_context2, and its address is what
the provider is given and hands back; what the work was posted with is kept beside it, so whatever
the provider may still touch is alive until the completion has been read.

Source: reference ofi.md A6, B1.
"""

from __future__ import annotations

from typing import Any, Final

SLOT: Final = 64  # bytes; libfabric: sizeof(struct fi_context2), eight pointers
BLOCK: Final = 256  # slots; arbitrary: as many as a queue has work entries, or a quarter of them

# what the work was posted with, its buffers, the region its descriptor is of, whether it receives
Held = tuple[object, object, object, bool]


class Contexts:
    """Slots for the work that reports to one completion queue.

    Attributes:
        free: addresses of slots that nobody has; take one with `pop`, give it back with `append`.
        held: what is kept for each slot whose work is under way, by its address.
    """

    def __init__(self, ffi: Any) -> None:
        self.free: list[int] = []
        self.held: dict[int, Held] = {}
        self._ffi = ffi
        self._blocks: list[Any] = []

    def more(self) -> int:
        """A slot, when `free` has none."""
        ffi = self._ffi
        block = ffi.new("char[]", (BLOCK + 1) * SLOT)
        self._blocks.append(block)
        start = int(ffi.cast("uintptr_t", block))
        start += -start % SLOT
        self.free.extend(range(start, start + BLOCK * SLOT, SLOT))
        return self.free.pop()

    def uses(self, region: object) -> bool:
        """Whether work under way has `region` for its local memory."""
        return any(held[2] is region for held in self.held.values())
