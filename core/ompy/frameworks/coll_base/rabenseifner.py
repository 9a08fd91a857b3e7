"""Rabenseifner's reductions: each place combines a part of the data, then the parts are gathered.

The partner's distance doubles while the part is halved, so a place always holds what neighbouring
ranks have combined: the order of the ranks is kept. Every part is combined in one place alone, so
all members get the same bits.

Source: Rabenseifner 2004, "Optimization of collective reduction operations".
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from ompy.data.convertor import allocate_memory
from ompy.data.message import Message
from ompy.data.operation import Operation
from ompy.data.packed import Room, pack_into
from ompy.frameworks.coll_base.combine import Combine, combining
from ompy.frameworks.coll_base.places import Places
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule


class Halving(NamedTuple):
    """A step: bytes `keep` of the data stayed, bytes `give` went to `partner`."""

    partner: int
    keep: slice
    give: slice


def allreduce(
    exchange: Exchange, send: Message | None, receive: Message, operation: Operation
) -> Schedule:
    """Halve and combine, then put the parts together again in the reverse order."""
    rank = exchange.rank
    places = Places(rank, exchange.size)
    combine = combining(operation, receive.layout)
    room = Room(receive, send if send is not None else receive)
    total = room.view
    if places.idle:
        exchange.send(total, rank + 1)
        yield
        exchange.receive(total, rank + 1)
        yield
    else:
        unit = receive.layout.size
        steps = yield from _halve(exchange, places, total, unit, combine, operation)
        for step in reversed(steps):
            exchange.swap(total[step.keep], step.partner, total[step.give], step.partner)
            yield
        if places.paired:
            exchange.send(total, rank - 1)
            yield
    room.settle()


def reduce(
    exchange: Exchange,
    send: Message | None,
    receive: Message | None,
    operation: Operation,
    root: int,
) -> Schedule:
    """Halve and combine, then send the parts straight to the root."""
    mine = send if send is not None else receive
    assert mine is not None, "every member has data"
    places = Places(exchange.rank, exchange.size)
    combine = combining(operation, mine.layout)
    room = Room(receive, mine) if receive is not None and exchange.rank == root else None
    if room is not None:
        total = room.view
    else:
        total = allocate_memory(mine.size)
        pack_into(total, mine)
    unit = mine.layout.size
    if places.idle:
        exchange.send(total, exchange.rank + 1)
        yield
    else:
        yield from _halve(exchange, places, total, unit, combine, operation)
    if room is not None:
        for place in range(places.power):
            if places.rank(place) != root:
                part = _part(place, places.power, mine.count, unit)
                exchange.receive(total[part], places.rank(place))
        yield
        room.settle()
    elif not places.idle:
        exchange.send(total[_part(places.place, places.power, mine.count, unit)], root)
        yield


def _halve(
    exchange: Exchange,
    places: Places,
    total: memoryview,
    unit: int,
    combine: Combine,
    operation: Operation,
) -> Generator[None, None, list[Halving]]:
    """Combine with partners ever farther away, in each step the half of what is left."""
    elements = len(total) // unit if unit else 0
    spare = allocate_memory(len(total) if places.paired else (elements + 1) // 2 * unit)
    if places.paired:
        exchange.receive(spare, exchange.rank - 1)
        yield
        combine(spare, total)
    steps: list[Halving] = []
    first, last, distance = 0, elements, 1
    while distance < places.power:
        middle = (first + last) // 2
        low, high = slice(first * unit, middle * unit), slice(middle * unit, last * unit)
        upper = bool(places.place & distance)
        keep, give = (high, low) if upper else (low, high)
        partner = places.rank(places.place ^ distance)
        part = total[keep]
        coming = spare[: len(part)]
        exchange.swap(total[give], partner, coming, partner)
        yield
        if upper or operation.commutative:
            combine(coming, part)
        else:
            combine(part, coming)
            part[:] = coming
        steps.append(Halving(partner, keep, give))
        first, last = (middle, last) if upper else (first, middle)
        distance *= 2
    return steps


def _part(place: int, power: int, count: int, unit: int) -> slice:
    """The bytes that `place` holds when all halves are taken."""
    first, last, distance = 0, count, 1
    while distance < power:
        middle = (first + last) // 2
        first, last = (middle, last) if place & distance else (first, middle)
        distance *= 2
    return slice(first * unit, last * unit)
