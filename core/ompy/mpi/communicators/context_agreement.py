"""Agreement between members of a communicator, or of two groups: on small values, and context ids.

A new communicator needs a context id that is free in every one of its members. Each proposes
the next free one after the last it used. If all propose the same that is it, as nearly always; else
the highest wins if it is free everywhere, or they go on above it (the textbook algorithm, as in
Open MPI's ompi_comm_nextcid). Ids are used in turn, so that a message for a communicator that was
freed does not meet a new one with its id.

All is written in steps (`ompy.frameworks.collectives.schedule`): waited for in the caller, or taken
in the background by the completions of the messages (`duplicates.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from itertools import chain
from struct import Struct
from typing import Final, TypeVar
from zlib import crc32

from ompy import raw
from ompy.compiled import ccall, cfunc
from ompy.data.convertor import GrowingConvertor
from ompy.data.errors import ERR_INTERN, MPIError
from ompy.engine.lock import RankLock
from ompy.frameworks.collectives.coll_selection import SelectedColl
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.values import pack_values, unpack_values
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.job import FIRST_BRIDGE
from ompy.mpi.state import World

FIRST_ID: Final = 2  # reference: 0 is COMM_WORLD, 1 is COMM_SELF
# reference openmpi.md 3.4: the header has 16 bits for it; the last ones are bridges
LAST_ID: Final = FIRST_BRIDGE - 1
# an id, or whether it is free; the process, and which of its agreements this is
_PROPOSAL: Final = Struct("<qqq")
NO_PROPOSAL: Final = _PROPOSAL.pack(0, 0, 0)  # of who gets no new communicator
SPREAD_MAX: Final = 10  # bits; arbitrary: of a sixty-fourth of all ids one of many is free soon


Ask = Callable[[bytes], list[bytes]]  # what all say, told what this rank says; all call it
Result = TypeVar("Result")
Steps = Generator[None, None, Result]  # a part of a schedule with a result
AskInSteps = Callable[[bytes], Steps[list[bytes]]]  # as `Ask`


def exchange_values(
    communicator: Communicator, members: Sequence[int], tag: int, said: bytes, word: int = 0
) -> list[bytes]:
    """What every member says, by place in `members`; small values, along a binomial tree.

    Args:
        communicator: to talk in.
        members: ranks in it that call this together, the same list in each; this one's is there.
        tag: internal tag nobody else uses at the same time between these ranks.
        said: this rank's value.
        word: of the call; 0 for the last one of all members.

    Raises:
        MPIError: a member cannot be reached, has left, or makes another call. If all of the
            communicator were to take part, the others are told; a part of it may go on without.
    """
    if len(members) == 1:
        return [said]
    exchange = _exchange_of(communicator, tag, word)
    tell = _all_are_told(communicator, members, word)
    return _complete_steps(exchange, values_in_steps(exchange, members, said), tell=tell)


@ccall
def exchange_words(
    communicator: Communicator, members: Sequence[int], tag: int, said: bytes, word: int = 0
) -> list[bytes]:
    """As `exchange_values`, of values that have one size in all members.

    If all of the communicator take part, and share memory for collectives, no message is sent. A
    call with a word of its own has no number there: who is in no such call could not tell it.
    """
    if len(members) == 1:
        return [said]
    coll: SelectedColl | None = communicator.collectives()
    if len(members) == communicator.size and coll is not None and not word:
        found: list[bytes] | None = coll.exchange_words(said)
        if found is not None:
            return [found[rank] for rank in members]
    exchange = _exchange_of(communicator, tag, word)
    try:
        return _words_by_messages(exchange, members, said)
    except MPIError as problem:
        tell = _all_are_told(communicator, members, word)
        raise _failure(exchange, problem, tell) from problem.__cause__


@cfunc
def _exchange_of(communicator: Communicator, tag: int, word: int) -> Exchange:
    """The messages of a call; its word is 0 for the last one of all members."""
    exchange = Exchange(communicator, tag)
    if word:
        exchange.word = word
    return exchange


@cfunc
def _all_are_told(communicator: Communicator, members: Sequence[int], word: int) -> bool:
    """Whether a member whose part fails tells the others.

    A tag of the user's comes again at once: who waits there asks, and is told (`patience.py`).
    """
    return len(members) == communicator.size and not word


@cfunc
def _words_by_messages(exchange: Exchange, members: Sequence[int], said: bytes) -> list[bytes]:
    """What every member says, by place in `members` (recursive doubling).

    In each round two members tell each other all they know. As many as a power of two do; each of
    the others tells one of them first, and is told last. Whoever waits for a member has told it
    before, so that one whose part fails knows what to drop (`patience.py`). Whom a member cannot
    tell any more has died; what it has said itself is known, and is no error here or elsewhere.
    """
    size: int = len(members)
    place: int = members.index(exchange.rank)
    paired: int = 1
    while 2 * paired <= size:
        paired *= 2
    width: int = len(said) * (1 if paired == size else 2)  # what is known of a pair's member
    memory = memoryview(bytearray(paired * width))
    own: int = place % paired
    exchange.whole = True
    if place >= paired:
        exchange.swap(memoryview(said), members[own], memory, members[own])
        exchange.finish_receiving()
        return _by_place(memory, size, len(said))
    memory[own * width : own * width + len(said)] = said
    if own + paired < size:
        exchange.receive(memory[own * width + len(said) : (own + 1) * width], members[own + paired])
        exchange.finish_receiving()
    step: int = 1
    while step < paired:
        first: int = own - own % step
        partner: int = members[own ^ step]
        known = memory[first * width : (first + step) * width]
        first ^= step
        exchange.swap(known, partner, memory[first * width : (first + step) * width], partner)
        exchange.finish_receiving()
        step *= 2
    if own + paired < size:
        exchange.send(memory, members[own + paired])
        exchange.finish_receiving()
    return _by_place(memory, size, len(said))


@cfunc
def _by_place(memory: memoryview, size: int, length: int) -> list[bytes]:
    """The values of `_words_by_messages`: each with another's behind it if not all are paired."""
    everything = bytes(memory)
    step: int = length if len(everything) == size * length else 2 * length
    found: list[bytes] = []
    place: int
    for place in range(size):
        at: int = place * step
        if at >= len(everything):
            at += length - len(everything)
        found.append(everything[at : at + length])
    return found


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
    exchange = Exchange(communicator, tag)
    return _complete_steps(exchange, between_in_steps(exchange, said), tell=True)


def exchange_words_between(
    communicator: Communicator, tag: int, said: bytes
) -> tuple[list[bytes], list[bytes]]:
    """As `exchange_between`, of values that have one size in all members.

    No message is sent where both groups share memory.
    """
    united = communicator.united
    coll = None if united is None else united.collectives()
    found = None if coll is None else coll.exchange_words(said)
    if found is None:
        return exchange_between(communicator, tag, said)
    if communicator.leads():
        size = len(communicator.own)
        return found[:size], found[size:]
    size = communicator.size
    return found[size:], found[:size]


def _complete_steps(exchange: Exchange, steps: Steps[Result], *, tell: bool) -> Result:
    """Take steps, waiting for each.

    Args:
        exchange: their messages.
        steps: the steps.
        tell: all members of the communicator take part, and are told if that fails here.
    """
    try:
        while True:
            next(steps)
            exchange.finish()
    except StopIteration as ended:
        found: Result = ended.value
        return found
    except MPIError as problem:
        raise _failure(exchange, problem, tell) from problem.__cause__


def _failure(exchange: Exchange, problem: MPIError, tell: bool) -> MPIError:
    """What to raise when an exchange has failed, which takes back what it had posted.

    Args:
        exchange: its messages.
        problem: what it failed of.
        tell: as of `_complete_steps`.
    """
    exchange.cancel()  # their memory is nobody's else
    if not tell:
        return problem
    exchange.abandon(problem)
    return exchange.explained(problem)


def values_in_steps(exchange: Exchange, members: Sequence[int], said: bytes) -> Steps[list[bytes]]:
    """The steps of `exchange_values`."""
    place = members.index(exchange.rank)
    size = len(members)
    values = [said]  # of the members from `place` on
    step = 1
    while step < size and not place & step:
        if place + step < size:
            came = yield from _received(exchange, (members[place + step],))
            values += unpack_values(came[0])
        step <<= 1
    everything = memoryview(pack_values(values))
    if place:
        exchange.send(everything, members[place - step])
        (everything,) = yield from _received(exchange, (members[place - step],))
    while step > 1:
        step >>= 1
        if place + step < size:
            exchange.send(everything, members[place + step])
    yield
    return unpack_values(everything)


def members_in_steps(exchange: Exchange, said: bytes) -> Steps[list[bytes]]:
    """The steps in which all members of a communicator say something, of both groups if of two."""
    if exchange.communicator.between:
        return list(chain(*(yield from between_in_steps(exchange, said))))
    return (yield from values_in_steps(exchange, range(exchange.size), said))


def between_in_steps(exchange: Exchange, said: bytes) -> Steps[tuple[list[bytes], list[bytes]]]:
    """The steps of `exchange_between`."""
    others = range(exchange.size)
    _tell_all(exchange, said)
    theirs = [bytes(view) for view in (yield from _received(exchange, others))]
    if not exchange.rank:
        _tell_all(exchange, pack_values(theirs))
    (ours,) = yield from _received(exchange, (0,))
    return unpack_values(ours), theirs


def _tell_all(exchange: Exchange, said: bytes) -> None:
    """Send each member of the other group something."""
    for target in range(exchange.size):
        exchange.send(memoryview(said), target)


def _received(exchange: Exchange, sources: Sequence[int]) -> Steps[list[memoryview]]:
    """End the step with a message of any length from each of some members."""
    rooms = [GrowingConvertor() for _ in sources]
    for room, source in zip(rooms, sources, strict=True):
        exchange.receive_into(room, source)
    yield
    views = [room.view for room in rooms if room.view is not None]
    assert len(views) == len(rooms), "a received message has its memory"
    return views


@ccall
def agree_on_context(world: World, ask: Ask) -> int:
    """A context id that is free in all members; it stays reserved until `release_context`.

    Args:
        world: this rank.
        ask: called by all of them equally often.

    Raises:
        MPIError: ERR_INTERN, there is none left; or a member cannot be reached.
    """
    mine: int
    mine, mark = first_proposal(world)
    said = proposal_of(mine, mark)
    answers: list[bytes]
    answer: bytes
    try:
        answers = ask(said)
    except BaseException:
        release_context(world, mine)
        raise
    for answer in answers:
        if raw.signed_word(answer, 0) != mine:
            return _go_on(ask, _proposals(world, mine, mark), answers)
    world.ids.following = mine + 1  # all hold it, and know that
    return mine


@ccall
def proposal_of(mine: int, mark: tuple[int, int]) -> bytes:
    """What a rank says that proposes an id."""
    rank, agreement = mark
    said: bytes = raw.three_words(mine, rank, agreement)  # as `_PROPOSAL`
    return said


def _go_on(ask: Ask, proposals: Generator[bytes, list[bytes], int], answers: list[bytes]) -> int:
    """The same, when the first proposals differ."""
    try:
        next(proposals)
        said = proposals.send(answers)
        while True:
            said = proposals.send(ask(said))
    except StopIteration as agreed:
        number: int = agreed.value
        return number
    finally:
        proposals.close()


def agree_in_steps(world: World, ask: AskInSteps) -> Steps[int]:
    """The steps of `agree_on_context`."""
    proposals = _proposals(world, *first_proposal(world))
    return (yield from _to_the_end(proposals, ask))


def go_on_in_steps(
    world: World, ask: AskInSteps, mine: int, mark: tuple[int, int], answers: list[bytes]
) -> Steps[int]:
    """The steps that follow when the first proposals differ.

    Args:
        world: this rank.
        ask: as of `agree_in_steps`.
        mine: what this rank proposed; it is reserved.
        mark: of the agreement.
        answers: what all have said to that.
    """
    return (yield from _to_the_end(_proposals(world, mine, mark), ask, answers))


def _to_the_end(
    proposals: Generator[bytes, list[bytes], int],
    ask: AskInSteps,
    answers: list[bytes] | None = None,
) -> Steps[int]:
    """The steps until all agree; `answers` are those to the first proposal, if it was told."""
    try:
        said = next(proposals)
        while True:
            if answers is None:
                answers = yield from ask(said)
            said, answers = proposals.send(answers), None
    except StopIteration as agreed:
        number: int = agreed.value
        return number
    finally:
        proposals.close()


@ccall
def first_proposal(world: World) -> tuple[int, tuple[int, int]]:
    """An id that is reserved here, and what tells this agreement from others."""
    ids = world.ids
    mark = (world.context.rank, next(ids.agreements))
    # not the lowest: what is under way for a communicator just freed must not find a new one
    return _reserve_from(world, ids.following), mark


def _proposals(
    world: World, mine: int, mark: tuple[int, int]
) -> Generator[bytes, list[bytes], int]:
    """What this rank says until an id is agreed on, sent what all have said.

    Several agreements of one process may be under way, and in another process in another order.
    Each may then hold what the other wants, again and again. So what they go on with differs: it
    depends on everybody's proposals, and those on which agreements they are of.

    Args:
        world: this rank.
        mine: what it says first, an id that is reserved.
        mark: of the agreement.
    """
    spread = 0
    held = {mine}
    try:
        while True:
            answers = yield _PROPOSAL.pack(mine, *mark)
            proposed = _numbers(answers)
            chosen = max(proposed)
            if min(proposed) == chosen:  # all hold it, and know that
                held.remove(chosen)
                world.ids.following = chosen + 1
                return chosen
            if chosen not in held and _reserve(world, chosen):
                held.add(chosen)
            free = _numbers((yield _PROPOSAL.pack(chosen in held, *mark)))
            if all(free):
                held.remove(chosen)
                world.ids.following = chosen + 1
                return chosen
            start = chosen + 1 + crc32(b"".join(answers)) % (1 << spread)
            spread = min(spread + 1, SPREAD_MAX)
            mine = _reserve_from(world, start)
            held.add(mine)
    finally:
        for number in held:
            release_context(world, number)


@ccall
def release_context(world: World, number: int) -> None:
    """The communicator with a context id agreed on has been made, or will not be."""
    if number < 0:
        return
    lock: RankLock = world.engine.lock
    lock.acquire(True)
    world.ids.reserved.discard(number)
    lock.release()


def _numbers(values: list[bytes]) -> list[int]:
    return [int(_PROPOSAL.unpack(value)[0]) for value in values]


@cfunc
def _reserve(world: World, number: int) -> bool:
    reserved: set[int] = world.ids.reserved
    lock: RankLock = world.engine.lock
    lock.acquire(True)
    free: bool = number not in reserved and number not in world.process.communicators
    if free:
        reserved.add(number)
    lock.release()
    return free


@cfunc
def _reserve_from(world: World, start: int) -> int:
    start = start if start <= LAST_ID else FIRST_ID
    if _reserve(world, start):
        return start
    for number in chain(range(start, LAST_ID + 1), range(FIRST_ID, start)):
        if _reserve(world, number):
            return number
    raise MPIError(ERR_INTERN, f"all {LAST_ID + 1} context ids are in use: free communicators")
