"""Sequence numbers: 16 bits, compared by their signed difference.

Two numbers can be compared while they are less than half of the numbers apart, and a window is far
smaller than that. Source: reference usnic.md 9.
"""

from __future__ import annotations

from typing import Final

from ompy.compiled import ccall

SPACE: Final = 1 << 16  # reference usnic.md 9: sequence numbers have 16 bits
HALF: Final = SPACE >> 1
WINDOW: Final = 4096  # seed usnic: entries of an endpoint's send window

assert WINDOW < HALF, "a number in the window must compare right with every other one in it"
assert SPACE % WINDOW == 0, "a number's slot must not jump where the numbers wrap"


@ccall
def after(sequence: int, count: int = 1) -> int:
    """The number `count` places on; back when that is negative."""
    return (sequence + count) % SPACE


@ccall
def distance(sequence: int, base: int) -> int:
    """How far `sequence` is ahead of `base`: -32768 to 32767, negative when it is behind."""
    return (sequence - base + HALF) % SPACE - HALF


@ccall
def window_slot(sequence: int) -> int:
    """Index of the window entry a number has."""
    return sequence % WINDOW
