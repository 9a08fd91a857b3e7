"""Partitioned messages: how a sender and a receiver find each other.

Both make a request of their own, in one order for each pair of processes and tag, and neither may
wait for the other then. So a sender *offers*: how many partitions of how many bytes it has. The
receiver *answers* with the first of the tags that the partitions are sent with, one each: the
receiver chooses them, as only it knows when nothing is under way for a tag any more. Offers of
one sender come in their order, whatever user's tag they are for; answers name the offer.

    TAG_OFFER    sender to receiver: number, user's tag, partitions, bytes of each
    TAG_ANSWER   receiver to sender: number, first tag; 0 and an error class when it cannot be

All is done with the rank's lock held. A completion may come anywhere in the PML, so what follows
from it waits for a turn of the engine.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.data.convertor import ContiguousConvertor
from ompy.data.errors import ERR_ARG, ERR_INTERN, ERR_OTHER, ERR_TRUNCATE, MPIError
from ompy.data.request import Request
from ompy.frameworks.coll import TAG_NONBLOCKING, TAGS_IN_TURN
from ompy.frameworks.collectives.call_order import TAG_CALLS
from ompy.frameworks.direct import TAG_PARTITIONS, is_partition
from ompy.frameworks.pml import STANDARD
from ompy.mpi.integers import whole_number
from ompy.trace.tag_names import name_tags, name_tags_by

if TYPE_CHECKING:
    from ompy.mpi.state import CommState

# internal tags; arbitrary, below that of inquiries
TAG_OFFER: Final = -60
TAG_ANSWER: Final = -61
PARTITIONS_MAX: Final = TAG_CALLS + TAG_PARTITIONS - 1
assert TAG_PARTITIONS < TAG_NONBLOCKING - TAGS_IN_TURN, "others have tags above"
_OFFER: Final = Struct("<QqQQ")
_ANSWER: Final = Struct("<Qqq")

name_tags({TAG_OFFER: "an offer of partitions", TAG_ANSWER: "an answer to an offer of partitions"})
name_tags_by(lambda tag: "a partition" if is_partition(tag) else "")


# partitions up to this go in runs: arbitrary, a copy of it takes less than a message
SMALL: Final = 4096
RUN_BYTES: Final = 1 << 16  # of a run; arbitrary: much more than a message costs beside its copy


class Parts(NamedTuple):
    """How a message is divided: `partitions` of `size` bytes each."""

    partitions: int
    size: int

    def existing(self, partitions: Iterable[int]) -> Sequence[int]:
        """Partitions that exist.

        Raises:
            MPIError: ERR_ARG, one does not.
        """
        if type(partitions) is range and partitions:  # it may be longer than memory
            ends = partitions[0], partitions[-1]
            partitions = partitions if self.partitions > ends[1] >= ends[0] >= 0 else ends
        found = [whole_number(each) for each in partitions]
        for each in found:
            if not 0 <= each < self.partitions:
                text = f"partition {each} does not exist: the message has {self.partitions}"
                raise MPIError(ERR_ARG, text)
        return found

    def check_theirs(self, theirs: Parts, peer: int) -> None:
        """See that a sender divides as many bytes.

        Raises:
            MPIError: ERR_TRUNCATE, it does not.
        """
        ours, said = self.partitions * self.size, theirs.partitions * theirs.size
        if said != ours:
            raise MPIError(
                ERR_TRUNCATE,
                f"the partitions of rank {peer} have {said} bytes together, those here "
                f"{ours}: it has to be the same",
            )

    def theirs_in(self, chosen: int, theirs: Parts) -> tuple[int, int]:
        """The sender's partitions that touch one: the first, and the one behind the last."""
        first = chosen * theirs.partitions // self.partitions
        return first, -(-(chosen + 1) * theirs.partitions // self.partitions)


def check_unready(ready: Sequence[int], chosen: Sequence[int]) -> None:
    """See that partitions that are to be made ready are not ready yet, and none is named twice.

    Args:
        ready: of each partition, whether it is.
        chosen: those that are to be.

    Raises:
        MPIError: ERR_ARG, one is.
    """
    counted = Counter(chosen)
    for each in counted:
        if counted[each] + ready[each] > 1:
            raise MPIError(ERR_ARG, f"partition {each} is ready already")


def in_runs(state: CommState, parts: Parts) -> int:
    """How many partitions a run has at most; 0 if they are messages of their own.

    So they are in a world that tries all orders in which they may arrive.
    """
    partitions, size = parts
    line = state.communicator.context.direct
    if line is not None and line.explores:
        return 0
    return min(partitions, RUN_BYTES // max(size, 1)) if size <= SMALL else 0


def rows_of(chosen: list[int], most: int) -> list[tuple[int, int]]:
    """Partitions in rows of those side by side: the first of each row, and how many it has.

    Args:
        chosen: the partitions, sorted.
        most: how many a row has at most.
    """
    rows: list[tuple[int, int]] = []
    for each in chosen:
        if rows and each == sum(rows[-1]) and rows[-1][1] < most:
            rows[-1] = rows[-1][0], rows[-1][1] + 1
        else:
            rows.append((each, 1))
    return rows


class Offer(NamedTuple):
    """What a sender offers."""

    number: int
    tag: int
    parts: Parts
    first: int = 0  # of the tags of partitions, where the sender chooses them


Answered = Callable[[int, MPIError | None], object]  # the first tag, or why there is none
Offered = Callable[[Offer | None, MPIError | None], object]  # an offer, or why there will be none


class Channels:
    """Partitioned messages of one communicator, on one rank."""

    def __init__(self, state: CommState) -> None:
        self._communicator = state.communicator
        self._engine = state.world.engine
        self._pml = state.pml
        self._last = 0
        # by target and number: who waits for an answer
        self._offering: defaultdict[int, dict[int, Answered]] = defaultdict(dict)
        # by source: the receives of its offers, each with its memory
        self._posted: defaultdict[int, deque[tuple[Request, memoryview]]] = defaultdict(deque)
        # by source and user's tag: who waits for an offer, and offers that nobody waits for yet
        self._waiting: defaultdict[tuple[int, int], deque[Offered]] = defaultdict(deque)
        self._early: defaultdict[tuple[int, int], deque[Offer]] = defaultdict(deque)
        self._tags: defaultdict[int, TagRanges] = defaultdict(TagRanges)

    # --- the sender's side

    def make_offer(self, target: int, tag: int, parts: Parts, answered: Answered) -> None:
        """Offer partitions to a rank.

        Raises:
            MPIError: it cannot be reached.
        """
        self._last += 1
        self._send(target, TAG_OFFER, _OFFER.pack(self._last, tag, *parts))
        self._offering[target][self._last] = answered
        room = memoryview(bytearray(_ANSWER.size))
        request = self._pml.irecv(self._communicator, ContiguousConvertor(room), target, TAG_ANSWER)
        request.notify(partial(self._later, partial(self._hear_answer, target, request, room)))

    def _hear_answer(self, target: int, request: Request, room: memoryview) -> None:
        offering = self._offering[target]
        problem = problem_of(request)
        if problem is not None:  # no answer comes from there any more
            while offering:
                offering.popitem()[1](0, problem)
            return
        number, first, error = _ANSWER.unpack(room)
        said = MPIError(error, f"rank {target} cannot receive it") if error else None
        offering.pop(number)(first, said)

    # --- the receiver's side

    def await_offer(self, source: int, tag: int, offered: Offered) -> None:
        """Be told of the next offer of a rank with a tag that nobody else waits for."""
        early = self._early.get((source, tag))
        if early:
            offered(early.popleft(), None)
            return
        self._waiting[source, tag].append(offered)
        self._post(source)

    def answer_offer(self, target: int, offer: Offer, first: int, error: int = 0) -> None:
        """Tell the sender the first of its partitions' tags, or the class of an error."""
        self._send(target, TAG_ANSWER, _ANSWER.pack(offer.number, first, error))

    def take_tags(self, source: int, offer: Offer, count: int) -> int:
        """Tags for what a rank offers that no other message of it has: the first of them.

        Raises:
            MPIError: ERR_INTERN, there are not so many.
        """
        del offer
        return self._tags[source].reserve_tags(count)

    def release_tags(self, source: int, first: int) -> None:
        """No message with these tags is under way any more."""
        self._tags[source].release_tags(first)

    def _post(self, source: int) -> None:
        room = memoryview(bytearray(_OFFER.size))
        request = self._pml.irecv(self._communicator, ContiguousConvertor(room), source, TAG_OFFER)
        self._posted[source].append((request, room))
        request.notify(partial(self._later, partial(self._hear_offers, source)))

    def _hear_offers(self, source: int) -> None:
        """Take what has come of a rank, in its order."""
        posted = self._posted[source]
        while posted and posted[0][0].complete:
            request, room = posted.popleft()
            problem = problem_of(request)
            if problem is not None:
                self._fail_waiting(source, problem)
                return
            number, tag, partitions, size = _OFFER.unpack(room)
            self._hear_offer(source, Offer(number, tag, Parts(partitions, size)))

    def _hear_offer(self, source: int, offer: Offer) -> None:
        waiting = self._waiting.get((source, offer.tag))
        if waiting:
            waiting.popleft()(offer, None)
        else:  # who waits has posted a receive for one of another tag
            self._early[source, offer.tag].append(offer)
            self._post(source)

    def _fail_waiting(self, source: int, problem: MPIError) -> None:
        for (its_source, _), waiting in self._waiting.items():
            while its_source == source and waiting:
                waiting.popleft()(None, problem)

    # --- both

    def _send(self, target: int, tag: int, data: bytes) -> None:
        said = ContiguousConvertor(memoryview(data))
        self._pml.isend(self._communicator, said, target, tag, STANDARD)

    def _later(self, then: Callable[[], object]) -> None:
        self._engine.call_later(0, partial(self._unless_freed, then))

    def _unless_freed(self, then: Callable[[], object]) -> None:
        if self._communicator.context_id in self._communicator.context.communicators:
            then()


class TagRanges:
    """Tags of partitions that come from one rank: which are in use."""

    def __init__(self) -> None:
        self._used: dict[int, int] = {}  # by the first one, counted up from 0: how many

    def reserve_tags(self, count: int) -> int:
        """The first of so many tags in a row."""
        at = 0
        for first in sorted(self._used):
            if first - at >= count:
                break
            at = first + self._used[first]
        if at + count > PARTITIONS_MAX:
            raise MPIError(
                ERR_INTERN,
                f"{count} partitions from one rank are more than the {PARTITIONS_MAX} tags for "
                f"them have room for: free requests that are not used any more",
            )
        self._used[at] = max(count, 1)
        return TAG_PARTITIONS - at

    def release_tags(self, first: int) -> None:
        """They are free again."""
        self._used.pop(TAG_PARTITIONS - first, None)


def problem_of(request: Request) -> MPIError | None:
    """Why a message has failed; None when it is here."""
    if request.error:
        return MPIError(request.error, request.detail)
    return MPIError(ERR_OTHER, "it was cancelled") if request.cancelled else None
