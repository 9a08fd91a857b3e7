"""Memory for large received objects and for copies, used again once nobody holds it any more.

Fresh memory has to be cleared by the kernel, page by page, which takes longer than the copy of a
message into it. So blocks are kept: each is an anonymous mapping on huge pages, and every view of
it, and every array that stands on such a view, holds a reference to the mapping. A block whose
references are those of an idle one is nobody's, and the next message may have it.

A block that somebody holds for good goes from the list when others take its place, and is given
back to the system when he drops it. Any thread may ask.
"""

from __future__ import annotations

import _thread
import contextlib
import mmap
from sys import getrefcount
from typing import Final

POOLED_FROM: Final = 1 << 20  # bytes; arbitrary: half a huge page is worth one
HUGE_PAGE: Final = 1 << 21  # bytes; x86
BLOCKS_MAX: Final = 8  # arbitrary: objects a program has at a time, or passes on
KEPT_MAX: Final = 64 << 20  # bytes; arbitrary: what a rank that receives no more still keeps


class ReceivePool:
    """Blocks for received objects.

    Attributes:
        made: blocks there have been, for tests.
    """

    __slots__ = ("_blocks", "_idle", "_lock", "made")

    def __init__(self) -> None:
        self._blocks: list[mmap.mmap] = []  # the one used last comes last
        self._idle = 0
        self._lock = _thread.RLock()  # what the collector ends meanwhile may receive, too
        self.made = 0

    def take_memory(self, length: int) -> memoryview:
        """Writable memory of `length` bytes that nobody else has; not cleared."""
        with self._lock:
            return self._take(length)

    def _take(self, length: int) -> memoryview:
        blocks = self._blocks
        for index in reversed(range(len(blocks))):
            if length <= len(blocks[index]) <= 2 * length and self._is_idle(index):
                block = blocks.pop(index)
                break
        else:
            block = self._make(length)
        if len(block) <= KEPT_MAX:
            blocks.append(block)
            self._trim()
        return memoryview(block)[:length]

    def _is_idle(self, index: int) -> bool:
        return getrefcount(self._blocks[index]) <= self._idle

    def _make(self, length: int) -> mmap.mmap:
        size = -(-max(length, HUGE_PAGE) // HUGE_PAGE) * HUGE_PAGE
        block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):  # a kernel without huge pages: ordinary ones do
                block.madvise(mmap.MADV_HUGEPAGE)
        self.made += 1
        if not self._idle:  # what the list and the question itself hold, in this interpreter
            self._blocks.append(block)
            del block
            self._idle = getrefcount(self._blocks[-1])
            block = self._blocks.pop()
        return block

    def _trim(self) -> None:
        """Forget the blocks longest not used, until the rest is few and small enough."""
        blocks = self._blocks
        kept = sum(map(len, blocks))
        while len(blocks) > BLOCKS_MAX or kept > KEPT_MAX:
            kept -= len(blocks.pop(0))


pool: Final = ReceivePool()


def receive_memory(length: int) -> memoryview:
    """Writable memory for a received object; large ones from the pool."""
    return memoryview(bytearray(length)) if length < POOLED_FROM else pool.take_memory(length)
