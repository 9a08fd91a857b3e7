"""Agreement between members of a communicator, or of two groups: on small values, and context ids.

A new communicator needs a context id that is free in every one of its members. Each proposes
the next free one after the last it used; the highest wins if it is free everywhere, else they go
on above it (the textbook algorithm, as in Open MPI's ompi_comm_nextcid). Ids are used in turn, so
that a message for a communicator that was freed does not meet a new one with its id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from struct import Struct
from typing import Final

from ompy.data.convertor import ContiguousConvertor, GrowingConvertor
from ompy.data.errors import ERR_INTERN, MPIError
from ompy.data.request import Request
from ompy.frameworks import patience
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import STANDARD
from ompy.mpi.state import World

FIRST_ID: Final = 2  # reference: 0 is COMM_WORLD, 1 is COMM_SELF
LAST_ID: Final = 65535  # reference openmpi.md 3.4: the header has 16 bits for it
_NUMBER: Final = Struct("<q")
_LENGTH: Final = Struct("<I")


Ask = Callable[[bytes], list[bytes]]  # what all say, told what this rank says; all call it


def exchange_values(
    communicator: Communicator, members: Sequence[int], tag: int, said: bytes
) -> list[bytes]:
    """What every member says, by place in `members`; small values, along a binomial tree.

    Args:
        communicator: to talk in.
        members: ranks in it that call this together, the same list in each; this one's is there.
        tag: internal tag nobody else uses at the same time between these ranks.
        said: this rank's value.

    Raises:
        MPIError: a member cannot be reached, has left, or makes another call. If all of the
            communicator were to take part, the others are told; a part of it may go on without.
    """
    try:
        return _exchange(communicator, members, tag, said)
    except MPIError as problem:
        if len(members) < communicator.size:
            raise
        raise _given_up(communicator, tag, problem) from problem.__cause__


def exchange_between(
    communicator: Communicator, tag: int, said: bytes
) -> tuple[list[bytes], list[bytes]]:
    """What the members of both groups say: those of this rank's own group, those of the other.

    Everybody tells the other group; its first member says what it was told.

    Args:
        communicator: between two groups, all of which call this together.
        tag: internal tag nobody else uses at the same time.
        said: this rank's value.

    Raises:
        MPIError: as `exchange_values`.
    """
    try:
        theirs = _swap(communicator, tag, said, range(communicator.size))
        if communicator.rank:
            ours = bytes(_receive(communicator, 0, tag))
        else:
            ours = _swap(communicator, tag, pack_values(theirs), (0,))[0]
        return unpack_values(ours), theirs
    except MPIError as problem:
        raise _given_up(communicator, tag, problem) from problem.__cause__


def _swap(communicator: Communicator, tag: int, said: bytes, sources: Sequence[int]) -> list[bytes]:
    """Say something to each member of the other group, hear some of them."""
    sent = [_begin(communicator, target, tag, said) for target in range(communicator.size)]
    heard = [bytes(_receive(communicator, source, tag)) for source in sources]
    for target, request in enumerate(sent):
        patience.wait_for_message(communicator, request, target)
    return heard


def _given_up(communicator: Communicator, tag: int, problem: MPIError) -> MPIError:
    """All members were to take part: the others are told. Returns why it failed."""
    patience.abandon(communicator, tag, problem)
    order = communicator.order
    word = order.word if tag == order.tag() else 0
    return patience.explained(communicator, word, problem)


def _exchange(
    communicator: Communicator, members: Sequence[int], tag: int, said: bytes
) -> list[bytes]:
    place = members.index(communicator.rank)
    size = len(members)
    values = [said]  # of the members from `place` on
    step = 1
    while step < size and not place & step:
        if place + step < size:
            values += unpack_values(_receive(communicator, members[place + step], tag))
        step <<= 1
    if place:
        _send(communicator, members[place - step], tag, pack_values(values))
        everything = _receive(communicator, members[place - step], tag)
    else:
        everything = memoryview(pack_values(values))
    while step > 1:
        step >>= 1
        if place + step < size:
            _send(communicator, members[place + step], tag, everything)
    return unpack_values(everything)


def _begin(communicator: Communicator, target: int, tag: int, data: bytes | memoryview) -> Request:
    convertor = ContiguousConvertor(memoryview(data))
    return communicator.pml.isend(communicator, convertor, target, tag, STANDARD)


def _send(communicator: Communicator, target: int, tag: int, data: bytes | memoryview) -> None:
    patience.wait_for_message(communicator, _begin(communicator, target, tag, data), target)


def _receive(communicator: Communicator, source: int, tag: int) -> memoryview:
    convertor = GrowingConvertor()
    request = communicator.pml.irecv(communicator, convertor, source, tag)
    patience.wait_for_message(communicator, request, source)
    assert convertor.view is not None, "a received message has its memory"
    return convertor.view


def pack_values(values: list[bytes]) -> bytes:
    """Values, each with its length before it."""
    return b"".join(part for value in values for part in (_LENGTH.pack(len(value)), value))


def unpack_values(data: memoryview | bytes) -> list[bytes]:
    """What `pack_values` was given."""
    values = []
    at = 0
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        values.append(bytes(data[at : at + length]))
        at += length
    return values


def agree_on_context(world: World, ask: Ask) -> int:
    """A context id that is free in all members; it stays reserved until `release_context`.

    Args:
        world: this rank.
        ask: called by all of them equally often.

    Raises:
        MPIError: ERR_INTERN, there is none left; or a member cannot be reached.
    """
    # not the lowest: what is under way for a communicator just freed must not find a new one
    start = world.next_context
    held: set[int] = set()
    try:
        while True:
            mine = _reserve_from(world, start)
            held.add(mine)
            proposed = _numbers(ask(_NUMBER.pack(mine)))
            chosen = max(proposed)
            if chosen not in held and _reserve(world, chosen):
                held.add(chosen)
            free = _numbers(ask(_NUMBER.pack(chosen in held)))
            if all(free):
                held.remove(chosen)
                world.next_context = chosen + 1
                return chosen
            start = chosen + 1
    finally:
        for number in held:
            release_context(world, number)


def release_context(world: World, number: int) -> None:
    """The communicator with a context id agreed on has been made, or will not be."""
    with world.engine.lock:
        world.reserved.discard(number)


def _numbers(values: list[bytes]) -> list[int]:
    return [int(_NUMBER.unpack(value)[0]) for value in values]


def _reserve(world: World, number: int) -> bool:
    with world.engine.lock:
        if number in world.reserved or number in world.process.communicators:
            return False
        world.reserved.add(number)
        return True


def _reserve_from(world: World, start: int) -> int:
    start = start if start <= LAST_ID else FIRST_ID
    for number in chain(range(start, LAST_ID + 1), range(FIRST_ID, start)):
        if _reserve(world, number):
            return number
    raise MPIError(ERR_INTERN, f"all {LAST_ID + 1} context ids are in use: free communicators")
