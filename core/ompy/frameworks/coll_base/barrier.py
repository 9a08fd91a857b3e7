"""Barrier by dissemination (Hensgen, Finkel and Manber 1988)."""

from __future__ import annotations

from ompy.frameworks.exchange import Exchange
from ompy.frameworks.schedule import Schedule

_NOTHING = memoryview(b"")


def dissemination(exchange: Exchange) -> Schedule:
    """In step k tell the rank 2**k ahead, hear from the rank 2**k behind."""
    rank, size = exchange.rank, exchange.size
    distance = 1
    while distance < size:
        target, source = (rank + distance) % size, (rank - distance) % size
        exchange.swap(_NOTHING, target, _NOTHING, source)
        yield
        distance *= 2
