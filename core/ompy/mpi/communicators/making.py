"""Communicators are made: their members agree on a context id, and the rank keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ompy.compiled import ccall
from ompy.data.errors import MPIError
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.proc import Proc
from ompy.mpi.communicators.context_agreement import (
    Ask,
    agree_on_context,
    exchange_words,
    release_context,
)
from ompy.mpi.communicators.uniting import unite
from ompy.mpi.state import CommState, World


@ccall
def make_communicator(
    state: CommState, members: Sequence[int], tag: int, api: Any, word: int = 0
) -> CommState:
    """A communicator of some members, all of which call this.

    Args:
        state: the parent.
        members: ranks in the parent, in the order of their new ranks.
        tag: internal tag for the agreement.
        api: class of its handles.
        word: of the call, where not all members of the parent make it; else 0.

    Raises:
        MPIException: it cannot be made.
    """
    parent: Communicator = state.communicator
    ask = partial(exchange_words, parent, members, tag, word=word)
    procs: list[Proc] = parent.procs
    procs = [procs[rank] for rank in members]
    try:
        return agree_on_communicator(state.world, ask, api, procs)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__


@ccall
def agree_on_communicator(
    world: World, ask: Ask, api: Any, procs: Sequence[Proc], own: Sequence[Proc] | None = None
) -> CommState:
    """A communicator with a context that is free in all who are asked.

    Args:
        world: this rank.
        ask: what all of them say; they call this together.
        api: class of its handles.
        procs: its members, or those of the other group.
        own: this process's group, where that is another one.

    Raises:
        MPIError: as `agree_on_context`.
    """
    number, line = agree_on_ids(world, ask, between=own is not None)
    return with_context(world, number, line, api, procs, own)


@ccall
def agree_on_ids(world: World, ask: Ask, between: bool) -> tuple[int, int]:
    """What a new communicator needs; who is asked and is no member of it calls this as well.

    Args:
        world: this rank.
        ask: what all of them say; they call this together.
        between: the communicator is of two groups.

    Returns:
        An id that is free in all who are asked, and one for its line (`recovery.py`) or -1; both
        are reserved until they are released.

    Raises:
        MPIError: as `agree_on_context`.
    """
    number, line = agree_on_context(world, ask), -1
    if between and world.context.recovery is not None:
        line = agree_on_context(world, ask)
    return number, line


@ccall
def with_context(
    world: World,
    number: int,
    line: int,
    api: Any,
    procs: Sequence[Proc],
    own: Sequence[Proc] | None,
) -> CommState:
    """A communicator with an id that was agreed on, and one for its line (`recovery.py`) or -1."""
    try:
        made = world.process.communicator(number, procs, "", own, line)
        if made.between:
            made.uniting = partial(unite, world)
    finally:
        release_context(world, number)
        release_context(world, line)
    return CommState(world, made, api)
