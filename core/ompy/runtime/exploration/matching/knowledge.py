"""What ranks know of one another: operations that were begun before, whatever is chosen.

An operation comes before another in every schedule if its rank begins it first, or if the other
rank has heard of it: by a message, or as its own synchronous send is complete. A ready send needs
that of its receive (MPI 4.1, 3.4). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ompy.runtime.exploration.boxes import Message, Operation, Receive

Knows = Mapping[int, int]  # by rank, up to which number its operations were begun; never changed
# numbers of what a rank does for others begin there
SERVED: Final = 1 << 32  # arbitrary: no rank does so much
# and of steps of what it does: this square, which C has no number for
STEPS: Final = 1 << 64


def joined(mine: Knows, others: Knows, operation: Operation) -> Knows:
    """What a rank knows when it hears of an operation, and of what that one's rank knew then."""
    rank, number = operation
    if number >= STEPS:  # a step of an operation that was begun before
        number = number // SERVED % SERVED
    elif number >= SERVED:  # it may come at any point among its rank's own
        number = 0
    news = {one: up_to for one, up_to in others.items() if mine.get(one, 0) < up_to}
    if max(mine.get(rank, 0), news.get(rank, 0)) < number:
        news[rank] = number
    return {**mine, **news} if news else mine


def is_late(receive: Receive, message: Message) -> bool:
    """Whether a receive may be posted after its message is sent."""
    rank, number = receive.operation
    sender, sent = message.sender
    late: bool = number > (sent if rank == sender else message.knows.get(rank, 0))
    return late


def complaint_of(message: Message, to: int, receive: Receive | None) -> str:
    """What is wrong with a ready send, in words."""
    sent = f"the ready send of rank {message.sender[0]} at {_line(message.site)} to rank {to}"
    if receive is None:
        return f"{sent} has no receive"
    return f"{sent} may begin before its receive at {_line(receive.site)} is posted"


def _line(site: str) -> str:
    return site.rpartition("/")[2]
