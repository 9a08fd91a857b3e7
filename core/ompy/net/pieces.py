"""What is left of bytes in pieces when a stream has taken some of them."""

from __future__ import annotations

from ompy.compiled import ccall


@ccall
def without(pieces: list[memoryview], taken: int) -> list[memoryview]:
    """What is left of `pieces` after their first `taken` bytes; the same list for none taken."""
    if not taken:
        return pieces
    left: list[memoryview[int]] = []
    for piece in pieces:
        if taken >= len(piece):
            taken -= len(piece)
        else:
            left.append(piece[taken:])
            taken = 0
    return left
