"""Agreement between members of a communicator, or of two groups: on small values, and context ids.

A new communicator needs a context id that is free in every one of its members. Each proposes
the next free ones after the last it used, and all take the first that everybody has proposed; if
there is none they go on above. So one exchange mostly does, where Open MPI's ompi_comm_nextcid
proposes one id and asks whether the highest is free. Ids are used in turn, so that a message for a
communicator that was freed does not meet a new one with its id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
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
PROPOSED: Final = 8  # ids at a time; arbitrary: members are seldom further apart
_NOTHING: Final = 0xFFFF + 1  # in place of an id
_IDS: Final = Struct(f"<{PROPOSED}I")
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


def exchange_among_all(communicator: Communicator, tag: int, said: bytes) -> list[bytes]:
    """What `exchange_values` gives for all members and a value of the same size from each.

    At once where they share memory already.
    """
    coll = communicator.coll
    found = None if coll is None else coll.share_values(said)
    if found is not None:
        return found
    return exchange_values(communicator, range(communicator.size), tag, said)


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
    start, alike, looked_at = world.next_context, False, 0
    while looked_at < LAST_ID:
        mine = _reserve_some(world, start)
        try:
            lists = list(map(_ids, ask(_IDS.pack(*mine, *[_NOTHING] * (PROPOSED - len(mine))))))
            if not all(lists):
                break
            common = set(lists[0]).intersection(*lists[1:])
            if common:
                base = max(each[0] for each in lists)
                chosen = min(common, key=partial(_distance, base))
                mine.remove(chosen)
                world.next_context = chosen + 1
                return chosen
        finally:
            _release_all(world, mine)
        if (
            alike
        ):  # each has proposed the first ones from `start` on: none before their ends is common
            passed = min(_distance(start, each[-1]) for each in lists) + 1
            start, looked_at = _id_after(start, passed), looked_at + passed
        else:
            start, alike = max(each[0] for each in lists), True
    raise MPIError(ERR_INTERN, f"all {LAST_ID + 1} context ids are in use: free communicators")


def release_context(world: World, number: int) -> None:
    """The communicator with a context id agreed on has been made, or will not be."""
    with world.engine.lock:
        world.reserved.discard(number)


def _ids(said: bytes) -> list[int]:
    return [number for number in _IDS.unpack(said) if number != _NOTHING]


def _distance(start: int, number: int) -> int:
    """How many ids after another one an id is, as they are used in turn."""
    return (number - start) % (LAST_ID + 1 - FIRST_ID)


def _id_after(start: int, count: int) -> int:
    return (start - FIRST_ID + count) % (LAST_ID + 1 - FIRST_ID) + FIRST_ID


def _reserve_some(world: World, start: int) -> list[int]:
    """The next ids that are free here, from one on; none others of this process may take."""
    start = start if start <= LAST_ID else FIRST_ID
    found: list[int] = []
    with world.engine.lock:
        used, reserved = world.process.communicators, world.reserved
        for number in chain(range(start, LAST_ID + 1), range(FIRST_ID, start)):
            if number not in used and number not in reserved:
                found.append(number)
                if len(found) == PROPOSED:
                    break
        reserved.update(found)
    return found


def _release_all(world: World, numbers: Sequence[int]) -> None:
    with world.engine.lock:
        world.reserved.difference_update(numbers)
