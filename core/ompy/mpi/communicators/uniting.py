"""A communicator of both groups of one between them: what their collectives share memory in."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain

from ompy.frameworks.communicator import Communicator
from ompy.mpi.communicators.context_agreement import (
    Ask,
    agree_on_context,
    exchange_words,
    exchange_words_between,
    release_context,
)
from ompy.mpi.state import World


def asking(communicator: Communicator) -> Ask:
    """What asks all members of a communicator, of both groups if of two, in its present call."""
    tag = communicator.order.tag()
    if not communicator.between:
        return partial(exchange_words, communicator, range(communicator.size), tag)
    return partial(everybody, partial(exchange_words_between, communicator, tag))


def everybody(ask: Callable[[bytes], tuple[list[bytes], list[bytes]]], said: bytes) -> list[bytes]:
    """What the members of both groups say; `ask` tells that of the one and of the other."""
    return list(chain(*ask(said)))


def unite(world: World, between: Communicator) -> Communicator:
    """The communicator of both groups (`RankProcess.unite`); all of both call this together.

    Args:
        world: this rank.
        between: the communicator between them, in a call of all its members.

    Raises:
        MPIError: they cannot agree on a context id: a member takes no part, or there is none left.
    """
    number = agree_on_context(world, asking(between))
    try:
        return world.process.unite(number, between)
    finally:
        release_context(world, number)
