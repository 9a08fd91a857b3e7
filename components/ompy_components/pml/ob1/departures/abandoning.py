"""ABANDON: what a rank says whose part in a collective has failed, and what others make of it.

A rank whose collective fails, because a member has left or its operation has raised, takes no
further step of it, so others would wait for a rank that has not left. It tells all members with
which message to each it stopped: what waits for a later one with that internal tag fails as well,
and says ABANDON in turn. User messages are not touched.

An internal tag comes again after many calls (`call_order.py`). What was heard is therefore dropped
long before that: `STALE` calls later.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.data.header_layout import HeaderLayout
from ompy.frameworks.collectives.call_order import TAG_NUMBER
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc

from ompy_components.pml.ob1.headers import LEAVE, SEQUENCE_MASK, parse
from ompy_components.pml.ob1.states import SendState

if TYPE_CHECKING:
    from ompy_components.pml.ob1.matching import Matching
    from ompy_components.pml.ob1.module import Ob1

ABANDON: Final = 1  # in the second byte of a LEAVE
# error code of what failed, rank in the world, number of the last message sent to this peer, and
# internal tag
ABANDON_LAYOUT: Final = HeaderLayout(
    "ob1.abandon", "type u8, what u8, code u16, rank i32, context u64, sent u64, tag i64"
)
ABANDON_HEADER: Final = ABANDON_LAYOUT.struct
assert ABANDON_HEADER.size == 32
STALE: Final = TAG_NUMBER // 2  # calls; arbitrary: others are not behind by so many
_UNANSWERED: Final = (SendState.AWAIT_ACK, SendState.AWAIT_GET)


class Stop(NamedTuple):
    """Where a rank has stopped in a collective.

    Attributes:
        sent: number of its last message to this rank.
        code: of the error that stopped it.
        calls: how many this rank had begun in the communicator when it heard of it.
    """

    sent: int
    code: int
    calls: int


class Abandoned:
    """Collectives that others have abandoned.

    Attributes:
        freed: contexts that were here: a late ABANDON is of the old one.
        ranks: in the world, that have.
    """

    __slots__ = ("_context", "_ob1", "_stops", "freed", "ranks")

    def __init__(self, ob1: Ob1, context: RankContext) -> None:
        self._ob1 = ob1
        self._context = context
        self.ranks: set[int] = set()
        # by rank in the world, then by context and tag
        self._stops: dict[int, dict[tuple[int, int], Stop]] = {}
        self.freed: set[int] = set()

    def say(self, communicator: Communicator, tag: int, code: int) -> None:
        """Tell all members that may wait for this rank; `code` is of the error that stopped it."""
        with self._context.engine.lock:
            for place, proc in enumerate(communicator.procs):
                if proc is not self._context.me and not proc.left:
                    self._say_to(communicator, place, tag, code)

    def _say_to(self, communicator: Communicator, place: int, tag: int, code: int) -> None:
        queue = self._ob1.matching(communicator).known_peer(place)
        sent = queue.sent if queue is not None else 0
        message = ABANDON_HEADER.pack(
            LEAVE, ABANDON, code, self._context.rank, communicator.context_id, sent, tag
        )
        with suppress(MPIError):  # who cannot be reached waits for nobody
            endpoint = self._ob1.endpoint(communicator.procs[place])
            self._ob1.control.send(endpoint, message, LEAVE)

    def heard(self, data: memoryview) -> int:
        """Take in an ABANDON; whose."""
        _, _, code, rank, context_id, sent, tag = parse(ABANDON_HEADER, LEAVE, data)
        if context_id not in self.freed:
            self.ranks.add(rank)
            matching = self._ob1.receiving.matchings.get(context_id)
            calls = matching.communicator.order.number if matching is not None else 0
            self._stops.setdefault(rank, {})[context_id, tag] = Stop(sent, code, calls)
        return rank

    def expect(self, context_id: int) -> None:
        """A communicator is made: from now on its context is not that of a freed one."""
        self.freed.discard(context_id)

    def forget(self, context_id: int) -> None:
        """A communicator goes, and there are `ranks`."""
        self.freed.add(context_id)
        for stops in self._stops.values():
            for key in [key for key in stops if key[0] == context_id]:
                del stops[key]

    def has(self, proc: Proc, context_id: int, tag: int) -> bool:
        """Whether a rank has abandoned the collective with this internal tag, or an earlier one."""
        stops = self._stops.get(proc.rank)
        return stops is not None and (context_id, tag) in stops

    def look_at(self, proc: Proc) -> tuple[int, bool]:
        """Fail what waits for a rank's part in what it has abandoned.

        Returns:
            How much that was, and whether something waits whose messages are still under way.
        """
        failed, waits = 0, False
        stops = self._stops.get(proc.rank, {})
        for (context_id, tag), stop in list(stops.items()):
            matching = self._ob1.receiving.matchings.get(context_id)
            if matching is None or proc not in matching.communicator.procs:
                continue
            if matching.communicator.order.number - stop.calls > STALE:
                del stops[context_id, tag]
                continue
            place = matching.communicator.procs.index(proc)
            posted = matching.posted_with(place, tag)
            if posted and _taken_up_to(matching, place, stop.sent):
                failed += len(posted)
                for request in posted:
                    matching.cancel(request)
                    request.fail(stop.code, f"{_why(proc, stop.code)}: {request.story()}")
            elif posted:
                waits = True
            failed += self._fail_sends(proc, context_id, tag, stop.code)
        return failed, waits

    def _fail_sends(self, proc: Proc, context_id: int, tag: int, code: int) -> int:
        sending = self._ob1.sending
        vain = [
            request
            for request in sending.requests.values()
            if request.endpoint.proc is proc
            and request.context_id == context_id
            and request.tag == tag
            and request.state in _UNANSWERED
        ]
        for request in vain:
            sending.give_up(request, code, f"{_why(proc, code)}: {request.story()}")
        return len(vain)


def _taken_up_to(matching: Matching, place: int, sent: int) -> bool:
    """Whether a member's messages up to this one have been taken in their order."""
    queue = matching.known_peer(place)
    taken = queue.expected - 1 if queue is not None else 0
    return (taken - sent) & SEQUENCE_MASK <= SEQUENCE_MASK // 2


def _why(proc: Proc, code: int) -> str:
    left = "another rank has left" if code == ERR_PROC_FAILED else "its part has failed there"
    return f"{proc} has given up this collective, as {left}"
