"""Barrier by dissemination (Hensgen, Finkel and Manber 1988)."""

from __future__ import annotations

from ompy.frameworks.coll import TAG_BARRIER
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.basic.exchange import Exchange

_NOTHING = memoryview(b"")


def dissemination(communicator: Communicator) -> None:
    """In step k tell the rank 2**k ahead, hear from the rank 2**k behind."""
    rank, size = communicator.rank, communicator.size
    distance = 1
    with Exchange(communicator, TAG_BARRIER) as exchange:
        while distance < size:
            target, source = (rank + distance) % size, (rank - distance) % size
            exchange.swap(_NOTHING, target, _NOTHING, source)
            distance *= 2
