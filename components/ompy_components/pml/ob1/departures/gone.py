"""What becomes of what waits for ranks that have left, or that no path leads to any more.

README.md has the rules: "Ranks that leave", "Peers that are lost".

Nothing here is asked while nobody has left. News only mark what is to be looked at; the looking is
done by a poller that is there as long as something waits of which it is not known yet whether it
is in vain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.data.constants import ANY_SOURCE, ANY_TAG, TAG_UB
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.engine.base import Poller
from ompy.engine.timers import Timer
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.context import RankContext
from ompy.frameworks.fault_tolerance.departures import FINALIZED, OF_THE_DEAD
from ompy.frameworks.fault_tolerance.recovery import TAG_RECOVERY
from ompy.frameworks.proc import Proc
from ompy.trace.tag_names import tag_text

from ompy_components.pml.ob1.departures.abandoning import Abandoned
from ompy_components.pml.ob1.departures.in_doubt import InDoubt
from ompy_components.pml.ob1.departures.leaving import Records, Traffic
from ompy_components.pml.ob1.headers import SEQUENCE_MASK
from ompy_components.pml.ob1.matching import Matching, RecvRequest
from ompy_components.pml.ob1.sendrequest import SendRequest

if TYPE_CHECKING:
    from ompy_components.pml.ob1.module import Ob1

# looks without anything new until what is owed is given up. Arbitrary: a rank that has computed all
# the time polls between two of them, and takes in what has come meanwhile
LOOKS: Final = 4
FINALIZING: Final = 4  # patiences with a rank that is still finalizing; arbitrary


class _Watch:
    """How long nothing new has come of something that is waited for."""

    __slots__ = ("mark", "quiet")

    def __init__(self, mark: int) -> None:
        self.mark = mark
        self.quiet = 0


class Gone(Poller):
    """Fails what waits in vain for ranks that have left.

    Attributes:
        abandoned: collectives that ranks have given up.
        anybody: somebody has left, or given up a collective.
        in_doubt: what waits for anybody when somebody has died.
    """

    __slots__ = (
        "_anybody_in",
        "_context",
        "_expired",
        "_interval",
        "_known",
        "_look",
        "_lost",
        "_ob1",
        "_over",
        "_polled",
        "_probed",
        "_records",
        "_silent",
        "_timer",
        "_unlooked",
        "_watches",
        "_wild",
        "abandoned",
        "anybody",
        "in_doubt",
    )

    def __init__(self, ob1: Ob1, context: RankContext, patience_ms: int) -> None:
        """Begin.

        Args:
            ob1: whose.
            context: the rank.
            patience_ms: how long nothing may come of a rank that has left until what it may still
                owe is given up.
        """
        self._ob1 = ob1
        self._context = context
        self.abandoned = Abandoned(ob1, context)
        self.in_doubt = InDoubt(ob1, context)
        self._interval = max(1, patience_ms * 1_000_000 // (LOOKS * OF_THE_DEAD))
        self.anybody = False
        self._known: set[int] = set()  # ranks that have left
        self._records: dict[int, Records] = {}  # of those that have said what they sent
        self._silent: set[int] = set()  # of which the control plane knows that it was nothing
        self._lost: set[int] = set()  # that no path leads to any more; these are expired, too
        self._expired: set[int] = set()  # that have had their time
        self._anybody_in: set[int] = set()  # contexts where ANY_SOURCE has had its time
        self._look: set[int] = set()  # ranks that something may wait for
        self._wild: set[int] = set()  # contexts in which something may wait for anybody
        self._probed: set[int | tuple[int]] = set()  # of these, where a probe does
        self._watches: dict[int | tuple[int], _Watch] = {}  # by rank, or context in a tuple
        self._timer: Timer | None = None
        self._polled = False
        self._over = False
        self._unlooked = False  # something was noted since the last look

    @property
    def patience(self) -> int:
        """How long nothing may come of a rank that has left, ns."""
        return self._interval * LOOKS * OF_THE_DEAD

    # --- news

    def left(self, proc: Proc, silent: bool) -> None:
        """The control plane says that a rank has left."""
        if silent:
            self._silent.add(proc.rank)
        self._note(proc.rank)

    def said(self, rank: int, records: Records) -> None:
        """A rank has said LEAVE."""
        self._records[rank] = records
        proc = self._context.proc(rank)
        if not proc.left:
            proc.left = FINALIZED
        self._note(rank)

    def lost(self, proc: Proc, reason: str) -> None:
        """No path leads to a rank any more: nothing can come of it, or get there.

        Of one that has left, or ended, more is known: what it sent before may be here already.
        """
        if not proc.departed and not proc.left:
            proc.departed = f"can no longer be reached: {reason}"
            if self._context.recovery is not None:
                self._context.recovery.on_unreachable(proc.rank)
            self._lost.add(proc.rank)
            self._expired.add(proc.rank)
            self._note(proc.rank)

    def gave_up_collective(self, data: memoryview) -> None:
        """A rank has said ABANDON."""
        self._look.add(self.abandoned.heard(data))
        self._begin(TAG_UB + 1 if self._known else ANY_TAG)  # it says nothing of users' messages

    def _note(self, rank: int) -> None:
        self._known.add(rank)
        self._look.add(rank)
        self._wild.update(self._ob1.receiving.matchings)
        self._begin(TAG_UB + 1)

    def _begin(self, below: int) -> None:
        self.anybody = True
        self._ob1.look_at_tags(below)
        self._be_polled()

    # --- what begins later

    def posted(self, request: RecvRequest) -> None:
        """A receive was posted that nothing here fits."""
        communicator = request.communicator
        if request.wanted_source == ANY_SOURCE:
            self._anybody_in.discard(communicator.context_id)
            if self._known:  # later, who leaves is news
                self._wild.add(communicator.context_id)
                self._be_polled()
        else:
            proc = communicator.procs[request.wanted_source]
            self.begun(proc, communicator.context_id, request.wanted_tag)

    def begun(self, proc: Proc, context_id: int, tag: int) -> None:
        """A message to or from a rank has begun that needs more than its first fragment."""
        if proc.rank in self._known or self.abandoned.has(proc, context_id, tag):
            self._look.add(proc.rank)
            self._be_polled()

    def in_vain(self, communicator: Communicator, source: int) -> bool:
        """Whether a probe that finds nothing never will."""
        if not self.anybody:
            return False
        key: int | tuple[int]
        if source != ANY_SOURCE:
            rank = key = communicator.procs[source].rank
            if rank not in self._known:
                return False
            if rank in self._expired or self._is_silent(communicator, source, rank):
                return True
            self._look.add(rank)
        else:
            context_id = communicator.context_id
            lost = self._lost_of(communicator) is not None
            lost = lost or self.in_doubt.because_of(communicator) is not None
            if not lost and not self._all_left(communicator):
                return False
            if lost or context_id in self._anybody_in:
                return True
            key = (context_id,)
            self._wild.add(context_id)
        if key not in self._probed or not self._polled:
            self._probed.add(key)
            self._be_polled()
        return False

    def looked(self, communicator: Communicator, source: int, tag: int) -> None:
        """A probe that does not wait has found nothing, where a program survives the dead.

        Whoever looks again hears of them. Not of others: a program that is right may look again
        and again for what ranks have to say that have finalized.

        Raises:
            MPIError: ERR_PROC_FAILED, who it is from has died; or of ANY_SOURCE somebody.
        """
        if source == ANY_SOURCE:
            died = self.in_doubt.because_of(communicator) is not None
        else:
            died = communicator.procs[source] in self._context.departures.dead
        if died:
            with self._context.engine.lock:
                vain = self.in_vain(communicator, source)
                # what came while this was found out is there to be received
                found = self._ob1.matching(communicator).peek(source, tag) is not None
            if vain and not found:
                self.refuse(communicator, source, tag)

    def refuse(self, communicator: Communicator, source: int, tag: int) -> None:
        """Raise for a probe that is in vain.

        Raises:
            MPIError: ERR_PROC_FAILED.
        """
        with self._context.engine.lock:
            vain = self.in_vain(communicator, source)
        if vain:
            story = f"probe for a message with {tag_text(tag)} in {communicator.name}"
            if source == ANY_SOURCE:
                raise MPIError(ERR_PROC_FAILED, f"{self._why_nobody(communicator)}: {story}")
            raise MPIError(ERR_PROC_FAILED, f"{_why(communicator.procs[source])}: {story}")

    # --- looking

    def _be_polled(self) -> None:
        if self._over:
            return
        self._unlooked = True
        if not self._polled:
            self._polled = True
            self._context.engine.add_poller(self)

    def end(self) -> None:
        """The rank finalizes: nobody waits any more, and rails that registered memory go."""
        self._over = True
        self._unlooked = False
        if self._polled:
            self._polled = False
            self._context.engine.remove_poller(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def arm(self) -> bool:
        """What was noted is looked at before the rank sleeps: only a look begins the patience."""
        return not self._unlooked

    def poll(self) -> int:
        """Fail what is in vain; keep looking while it is not known of something."""
        self._unlooked = False
        events = 0
        for rank in sorted(self._look):
            self._look.discard(rank)  # what is failed may begin something
            events += self._look_at(rank)
        for context_id in sorted(self._wild):
            self._wild.discard(context_id)
            events += self._look_at_wild(context_id)
        if not self._look and not self._wild and self._polled:
            self._polled = False
            self._context.engine.remove_poller(self)
        if self._watches and self._timer is None:
            self._timer = self._context.engine.call_later(self._interval, self._tick)
        return events

    def _look_at(self, rank: int) -> int:
        """Look at what waits for a rank; how much of it was failed."""
        proc = self._context.proc(rank)
        if rank in self._expired:
            if rank in self._lost:
                self._ob1.forget_rails(proc)
            return self._give_up(proc)
        failed, waits = self.abandoned.look_at(proc)
        if rank in self._known:
            failed += self._look_at_left(proc)
        elif waits:
            self._look.add(rank)
        return failed

    def _look_at_left(self, proc: Proc) -> int:
        """Look at what waits for a rank that has left."""
        rank = proc.rank
        failed, waits = 0, rank in self._probed
        for matching in self._ob1.matchings():
            for place, other in enumerate(matching.communicator.procs):
                if other is proc and matching.waits_for(place):
                    if self._is_silent(matching.communicator, place, rank):
                        failed += _fail(matching.forget_source(proc), _why(proc))
                    else:
                        waits = True
        for request in self._sends_to(proc):
            if self._never_received(request, rank):
                failed += 1
                self._ob1.sending.give_up(request, ERR_PROC_FAILED, _told(proc, request))
            elif rank in self._records and self._ob1.sending.lacks_its_answer(request):
                # LEAVE says that it was received: the answer may be on its way for longer than
                # anybody has patience
                failed += 1
                self._ob1.sending.received(request)
            else:
                waits = True
        if waits or self._receives_from(proc):
            self._look.add(rank)
            self._watch(rank)
        else:
            self._watches.pop(rank, None)
        return failed

    def _look_at_wild(self, context_id: int) -> int:
        """Look at what waits for anybody in a communicator; how much of it was failed."""
        key = (context_id,)
        matching = self._ob1.receiving.matchings.get(context_id)
        if matching is not None and self.in_doubt.look_at(matching):
            return 1
        lost = matching is not None and self._lost_of(matching.communicator) is not None
        if matching is None or not (lost or self._all_left(matching.communicator)):
            self._watches.pop(key, None)
            return 0
        waiting = matching.wild.members()
        if lost or context_id in self._anybody_in:
            waiting = [request for request in waiting if request.wanted_tag != TAG_RECOVERY]
            for request in waiting:
                matching.wild.remove(request)
            return _fail(waiting, self._why_nobody(matching.communicator))
        if waiting or key in self._probed:
            self._wild.add(context_id)
            self._watch(key)
        else:
            self._watches.pop(key, None)
        return 0

    def _give_up(self, proc: Proc) -> int:
        """Fail all that waits for a rank; how much that was."""
        waiting = len(self._sends_to(proc)) + len(self._receives_from(proc))
        waiting += sum(
            matching.waits_for(place)
            for matching in self._ob1.matchings()
            for place, other in enumerate(matching.communicator.procs)
            if other is proc
        )
        if waiting or proc.rank in self._lost:
            self._ob1.gave_up = True
            self._ob1.sending.fail_peer(proc, _why(proc))
            self._ob1.receiving.fail_peer(proc, _why(proc))
        return waiting

    # --- what is known

    def who_may_send(self, communicator: Communicator) -> list[int]:
        """The members that have not left, or of whose messages there not all have come.

        Of one that has died all have, once what it may owe was given up. The list is empty where
        all have left: then what waits for anybody fails by itself.
        """
        if self.anybody and self._all_left(communicator):
            return []
        return [
            place
            for place, proc in enumerate(communicator.procs)
            if proc.rank not in self._known
            or not (self._is_over(proc) or self._is_silent(communicator, place, proc.rank))
        ]

    def _is_over(self, proc: Proc) -> bool:
        """Whether it has died, so long ago that nothing more comes of it."""
        return proc.rank in self._expired and proc in self._context.departures.dead

    def _is_silent(self, communicator: Communicator, place: int, rank: int) -> bool:
        """Whether nothing more comes of a member of a communicator.

        One that says LEAVE early, where ranks may die, answers the recovery of others until the
        end: of its messages there may be more here than it said.
        """
        records = self._records.get(rank)
        if records is None:
            return rank in self._silent
        sent = records.traffic.get(communicator.context_id, Traffic()).sent
        queue = self._ob1.matching(communicator).known_peer(place)
        taken = queue.expected - 1 if queue is not None else 0
        return (taken - sent) & SEQUENCE_MASK <= SEQUENCE_MASK // 2

    def _never_received(self, request: SendRequest, rank: int) -> bool:
        """Whether a rank has left before it received a message, which it then never answers."""
        records = self._records.get(rank)
        if records is None:
            return rank in self._silent
        if self._ob1.sending.is_among(request, records.unreceived):
            return True
        taken = records.traffic.get(request.context_id, Traffic()).taken
        return 0 < (request.sequence - taken) & SEQUENCE_MASK <= SEQUENCE_MASK // 2

    def _all_left(self, communicator: Communicator) -> bool:
        """Whether nobody may send in a communicator any more.

        A rank that has sent itself a message there may do so again.
        """
        me = self._context.me
        matching = self._ob1.matching(communicator)
        others = 0
        for place, proc in enumerate(communicator.procs):
            if proc is not me:
                if proc.rank not in self._known:
                    return False
                others += 1
            else:
                queue = matching.known_peer(place)
                if queue is not None and queue.sent:
                    return False
        return others > 0

    def _lost_of(self, communicator: Communicator) -> Proc | None:
        """A member that no path leads to: what anybody may send, it may have sent.

        Where ranks may die, one of the two ends soon, and the news of that decide.
        """
        if not self._lost or self._context.recovery is not None:
            return None
        return next((proc for proc in communicator.procs if proc.rank in self._lost), None)

    def _why_nobody(self, communicator: Communicator) -> str:
        """Why what waits for anybody is in vain."""
        lost = self._lost_of(communicator) or self.in_doubt.because_of(communicator)
        return _why(lost) if lost is not None else _everybody(communicator)

    def _sends_to(self, proc: Proc) -> list[SendRequest]:
        requests = self._ob1.sending.requests.values()
        return [request for request in requests if request.endpoint.proc is proc]

    def _receives_from(self, proc: Proc) -> list[RecvRequest]:
        """The receives of messages that have begun."""
        return [
            request
            for request in self._ob1.receiving.requests.values()
            if request.communicator.procs[request.source] is proc
        ]

    # --- patience

    def _watch(self, key: int | tuple[int]) -> None:
        if key not in self._watches:
            self._watches[key] = _Watch(self._mark(key))

    def _mark(self, key: int | tuple[int]) -> int:
        """A number that changes with whatever comes of what is waited for."""
        if isinstance(key, tuple):
            matching = self._ob1.receiving.matchings.get(key[0])
            return _taken(matching) if matching is not None else 0
        proc = self._context.procs[key]
        mark = sum(request.delivered for request in self._sends_to(proc))
        mark += sum(request.arrived for request in self._receives_from(proc))
        for matching in self._ob1.matchings():
            for place, other in enumerate(matching.communicator.procs):
                queue = matching.known_peer(place) if other is proc else None
                mark += queue.expected if queue is not None else 0
        return mark

    def _looks_needed(self, key: int | tuple[int]) -> int:
        """How many looks without anything new it takes until what is waited for is in vain.

        One that has died sends nothing again, and answers nothing. A rank that is still finalizing
        is delivering what it has sent, which over a wire that loses half of it, or a rail that is
        only now found to be gone, takes longer than the silence between two pieces.
        """
        if isinstance(key, tuple):
            matching = self._ob1.receiving.matchings.get(key[0])
            delivers = matching is not None and self._anybody_delivers(matching.communicator)
        else:
            proc = self._context.procs[key]
            if proc in self._context.departures.dead:
                return LOOKS
            delivers = not proc.departed
        return LOOKS * OF_THE_DEAD * (FINALIZING if delivers else 1)

    def _anybody_delivers(self, communicator: Communicator) -> bool:
        """Whether a member is still finalizing of which more may come in this communicator."""
        return any(
            proc is not self._context.me
            and not proc.departed
            and not self._is_silent(communicator, place, proc.rank)
            for place, proc in enumerate(communicator.procs)
        )

    def _tick(self) -> None:
        """It is time for a look."""
        self._timer = None
        for key, watch in list(self._watches.items()):
            mark = self._mark(key)
            watch.quiet = watch.quiet + 1 if mark == watch.mark else 0
            watch.mark = mark
            if watch.quiet >= self._looks_needed(key):
                del self._watches[key]
                self._probed.discard(key)
                if isinstance(key, tuple):
                    self._anybody_in.add(key[0])
                    self._wild.add(key[0])
                else:
                    self._expired.add(key)
                    self._look.add(key)
        if self._watches:
            self._timer = self._context.engine.call_later(self._interval, self._tick)
        self._be_polled()


def _taken(matching: Matching) -> int:
    return sum(queue.expected for queue in matching.peers())


def _why(proc: Proc) -> str:
    return f"{proc} {proc.departed or proc.left}"


def _everybody(communicator: Communicator) -> str:
    """Who has left, where that is all other members."""
    others = [proc for proc in communicator.procs if proc.left]
    return "; ".join(map(_why, others[:4])) + ("; and all others" if len(others) > 4 else "")


def _told(proc: Proc, request: SendRequest) -> str:
    return f"{_why(proc)}: {request.story()}"


def _fail(requests: list[RecvRequest], why: str) -> int:
    for request in requests:
        request.fail(ERR_PROC_FAILED, f"{why}: {request.story()}")
    return len(requests)
