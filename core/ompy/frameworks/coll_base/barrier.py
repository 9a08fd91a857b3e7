"""Barriers: dissemination (Hensgen, Finkel and Manber 1988), doubling, a tree, straight."""

from __future__ import annotations

from ompy.frameworks.coll_base.places import Places
from ompy.frameworks.coll_base.tree import children, parent
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule

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


def linear(exchange: Exchange) -> Schedule:
    """Everybody tells rank 0, which tells everybody."""
    others = range(1, exchange.size)
    if exchange.rank:
        exchange.swap(_NOTHING, 0, _NOTHING, 0)
        yield
        return
    for other in others:
        exchange.receive(_NOTHING, other)
    yield
    for other in others:
        exchange.send(_NOTHING, other)
    yield


def recursive_doubling(exchange: Exchange) -> Schedule:
    """In step k exchange news with the place whose number differs in bit k."""
    rank = exchange.rank
    places = Places(rank, exchange.size)
    if places.idle:
        exchange.swap(_NOTHING, rank + 1, _NOTHING, rank + 1)
        yield
        return
    if places.paired:
        exchange.receive(_NOTHING, rank - 1)
        yield
    distance = 1
    while distance < places.power:
        partner = places.rank(places.place ^ distance)
        exchange.swap(_NOTHING, partner, _NOTHING, partner)
        yield
        distance *= 2
    if places.paired:
        exchange.send(_NOTHING, rank - 1)
        yield


def tree(exchange: Exchange) -> Schedule:
    """Up a binomial tree to rank 0, then down again."""
    rank, size = exchange.rank, exchange.size
    below = children(rank, size)
    for child in below:
        exchange.receive(_NOTHING, child)
    yield
    if rank:
        exchange.swap(_NOTHING, parent(rank), _NOTHING, parent(rank))
        yield
    for child in reversed(below):
        exchange.send(_NOTHING, child)
    yield
