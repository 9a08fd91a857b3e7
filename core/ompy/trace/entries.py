"""The flight recorder's ring of entries. Compiled, `entries.pxd` takes its place.

An entry is what happened and six numbers; it is made into text only when somebody asks.
"""

from __future__ import annotations

from collections import deque
from typing import Any

Ring = Any  # what `ring` made


def ring(size: int) -> Ring:
    """Room for the last `size` entries."""
    return deque(maxlen=size)


def put(
    into: Ring,
    number: int,  # noqa: ARG001 - compiled it says where
    time: int,
    what: str,
    context: int,
    peer: int,
    tag: int,
    sequence: int,
    size: int,
) -> None:
    """Add entry number `number`, counted from 0."""
    into.append((time, what, context, peer, tag, sequence, size))


def entries(of: Ring, number: int) -> list[Any]:  # noqa: ARG001
    """What is in it, the oldest first, when `number` were put."""
    return list(of)
