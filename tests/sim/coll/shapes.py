"""Memory with canaries, filled and read by numpy indices: nothing of ompy's convertors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from random import Random

import numpy as np
from ompy.data.layout import Layout
from ompy.data.message import Blocks, Message

CANARY = 0xA5

# eight bytes of data each, so that they can be mixed and reduced alike
PLAIN = Layout(((0, 8),), 0, 8, "i")
GAPPED = Layout(((0, 4), (8, 4)), 0, 16, "i")
BACKWARDS = Layout(((4, 4), (-4, 4)), -4, 16, "i")
SHIFTED = Layout(((8, 8),), 0, 24, "i")
DESCENDING = Layout(((0, 8),), 0, -12, "i")
LAYOUTS = (PLAIN, GAPPED, BACKWARDS, SHIFTED, DESCENDING)


def positions(layout: Layout, origin: int, count: int) -> np.ndarray:
    """Index in memory of each packed byte."""
    element = np.concatenate(
        [np.arange(start, start + length) for start, length in layout.blocks] or [np.arange(0)]
    ).astype(np.int64)
    return (origin + np.arange(count)[:, None] * layout.extent + element).ravel()


@lru_cache(maxsize=4096)
def noise(size: int, *key: int) -> np.ndarray:
    """Read-only bytes that depend on size and key only."""
    return np.frombuffer(Random(str(key)).randbytes(size), np.uint8)


class Board:
    """A user's buffer: blocks somewhere in it, canaries everywhere else."""

    def __init__(
        self,
        counts: Sequence[int],
        layouts: Sequence[Layout],
        gaps: Sequence[int] | None = None,
        order: Sequence[int] | None = None,
    ) -> None:
        """Place the blocks one after the other in `order`, each behind a gap of canaries."""
        self.counts = list(counts)
        self.layouts = list(layouts)
        self.origins = [0] * len(self.counts)
        cursor = 5
        for index in order if order is not None else range(len(self.counts)):
            cursor += 3 if gaps is None else gaps[index]
            first, length = self.layouts[index].span(self.counts[index])
            self.origins[index] = cursor - first
            cursor += length
        self._make(cursor)

    def _make(self, size: int) -> None:
        self.memory = bytearray([CANARY]) * (size + 7)
        self.view = memoryview(self.memory)
        self.expected = np.full(size + 7, CANARY, np.uint8)
        self.regular = False

    @classmethod
    def even(cls, count: int, layout: Layout, ranks: int) -> Board:
        """Equal blocks, side by side."""
        board = cls.__new__(cls)
        first, length = layout.span(count * ranks)
        board.counts = [count] * ranks
        board.layouts = [layout] * ranks
        board.origins = [5 - first + rank * count * layout.extent for rank in range(ranks)]
        board._make(length + 5)
        board.regular = True
        return board

    def blocks(self) -> Blocks:
        return Blocks(self.view, self.counts, self.origins, self.layouts, regular=self.regular)

    def message(self, index: int = 0) -> Message:
        return Message(self.view, self.origins[index], self.counts[index], self.layouts[index])

    def size(self, index: int = 0) -> int:
        return self.counts[index] * self.layouts[index].size

    def put(self, index: int, packed: np.ndarray) -> None:
        """The user writes a block."""
        array = np.frombuffer(self.memory, np.uint8)
        array[self._where(index)] = packed
        self.expect(index, packed)

    def expect(self, index: int, packed: np.ndarray) -> None:
        """A block must hold this in the end, or its first elements must."""
        self.expected[self._where(index)[: len(packed)]] = packed

    def verify(self, *story: object) -> None:
        """Everything is as expected, canaries too."""
        got = np.frombuffer(self.memory, np.uint8)
        wrong = np.flatnonzero(got != self.expected)
        assert not len(wrong), (
            f"{story}: {len(wrong)} bytes differ, first at {wrong[0]} of {len(got)}; "
            f"blocks at {self.origins} of {self.counts} elements"
        )

    def _where(self, index: int) -> np.ndarray:
        return positions(self.layouts[index], self.origins[index], self.counts[index])


def single(count: int, layout: Layout) -> Board:
    """A buffer with one message."""
    return Board([count], [layout])
