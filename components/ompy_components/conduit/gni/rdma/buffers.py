"""The pool of bounce buffers.

Source: seed gasnet (Recognized environment variables); reference gasnet.md 6.7.
"""

from __future__ import annotations

from typing import Final

from ompy.mca.parameter import Values

from ompy_components.conduit.gni.parameters import bounce_buffer

ALIGNMENT: Final = 64  # arbitrary: a cache line each; a get on Gemini wants 4 bytes


class BouncePool:
    """Buffers of one size; the one that came back last goes out first.

    Several threads may take and give: one operation of a list is whole.

    Attributes:
        count: how many there are.
    """

    def __init__(self, memory: memoryview, values: Values) -> None:
        """Divide `memory`, which is registered and has `size` bytes."""
        stride = _stride(values)
        self.count = count_of(values)
        self._free = [memory[at * stride : (at + 1) * stride] for at in range(self.count)]

    @staticmethod
    def size(values: Values) -> int:
        """Bytes of memory they need."""
        return count_of(values) * _stride(values)

    def __len__(self) -> int:
        """How many are free."""
        return len(self._free)

    def take_bounce_buffer(self) -> memoryview | None:
        """A free one, if there is one."""
        try:
            return self._free.pop()
        except IndexError:
            return None

    def give(self, buffer: memoryview) -> None:
        """Give one back."""
        self._free.append(buffer)


def count_of(values: Values) -> int:
    """How many there are: the pool's size by the larger cutover."""
    buffer = bounce_buffer(values)
    return values.bounce_size // buffer if buffer else 0


def _stride(values: Values) -> int:
    return -(-bounce_buffer(values) // ALIGNMENT) * ALIGNMENT
