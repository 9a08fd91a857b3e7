"""How a rank stands when it has slept in its calls for long: what the launcher needs for a proof.

Every thread of the program sleeps in MPI, without a time limit, or waits for another one of its
threads (`waiting_threads.py`). The rank says so by itself, once
for each such sleep (more often while it cannot say all, and again when one of those has left who
could send what it wants of anybody), and when the launcher asks (STAND): it can only answer while
it sleeps, or polls. What it says, as JSON (ranks are those of the job,
communicators their context ids):

    live        why it may go on by itself; empty if it may not
    waits       for each thread: when its sleep began, its line of the program, what would end it:
                a list of needs of which one suffices (`needs.py`)
    tasks       collective calls that go on beside that, with what they need
    begun       by communicator the number of its last collective call; by meeting (`needs.py`) how
                often the rank has entered
    started     by communicator the numbers of persistent collective calls, and how often the rank
                has started each
    sent        by communicator the messages to each rank
    received    the same, of those from each rank that have come
    unmatched   messages that are here and that no receive has taken
    revoked     communicators that it knows to be revoked
    held        locks of windows that it has: communicator, target, whether alone, since which line
    queued      by communicator who waits for its own lock there, in order, and whether alone; also
                of a rank that is live

What a need names are ranks that have to do something, and with `mpi_ft_enable` those that could
revoke its communicator: who has left cannot. Whatever is not known to need somebody makes
the rank live: a proof may be missed, and is never wrong.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from ompy.data.request import AnyOf, Deferred, Waitable
from ompy.engine.base import Sleepers, Watched
from ompy.frameworks.call_site import site_text
from ompy.frameworks.collectives.call_order import call_text, number_of
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.needs import (
    COLLECTIVE,
    COMPLETE,
    LOCK,
    POST,
    PROBE,
    RECEIVE,
    Need,
    Needing,
)
from ompy.runtime.diagnosis.rank_report import place_of_program
from ompy.runtime.diagnosis.rank_spans import ranks_in_words
from ompy.runtime.diagnosis.waiting_threads import program_threads, waits_for_threads
from ompy.trace.tag_names import tag_text

if TYPE_CHECKING:
    from ompy.frameworks.collectives.patience import LongWait
    from ompy.runtime.ranks.process import RankProcess

# of communicators and of messages; arbitrary: who has more is not understood by a person either,
# and nothing is proven by what is left out
MOST: Final = 256
PAUSE: Final = 100_000_000  # ns; arbitrary: doubled before each time that it is said again
LOOK: Final = 300_000_000  # ns; arbitrary: a look at who is left takes some microseconds
_CALLS: Final = {POST: "Win.Post", COMPLETE: "Win.Complete"}


class _Told:
    """What was told of a thread's sleep.

    Attributes:
        waitable, since: which sleep.
        next: when it is told, or looked at, the next time, None for never.
        pause: to the time after that, ns.
        needs: what it said that it needs, where any one of several may give that; else None.
    """

    def __init__(self, waitable: int, since: int) -> None:
        self.waitable = waitable
        self.since = since
        self.next: int | None = since
        self.pause = PAUSE
        self.needs: list[dict[str, Any]] | None = None


class Standing(Sleepers):
    """What a rank says of itself; asked and told from any of its threads."""

    def __init__(
        self, process: RankProcess, tell: Callable[[int, bytes], object], *, unasked: bool = True
    ) -> None:
        """Say nothing yet.

        Args:
            process: the rank.
            tell: is told the number of the question, 0 for none, and what is said.
            unasked: say something by itself.
        """
        self._process = process
        self._tell = tell
        self._unasked = unasked
        self._asleep: dict[int, tuple[Waitable, int]] = {}
        self._told: dict[int, _Told] = {}  # by thread

    def sleeps(self, waitable: Waitable, since: int) -> None:
        """A thread sleeps; the first time of each sleep the launcher is told."""
        thread = threading.get_ident()
        self._asleep[thread] = (waitable, since)
        if not self._unasked:
            return
        told = self._told.get(thread)
        if told is None or (told.waitable, told.since) != (id(waitable), since):
            told = self._told[thread] = _Told(id(waitable), since)
        now = self._process.context.engine.now()
        if told.next is not None and now >= told.next:
            self._say_again(told, waitable, now)

    def _say_again(self, told: _Told, waitable: Waitable, now: int) -> None:
        """Say how the rank stands, unless that is said and nobody has left since."""
        needs = self._needs_anybody(waitable)
        if needs is not None and needs == told.needs:
            told.next = now + LOOK
            return
        told.needs = None
        told.pause *= 2
        if not self._say(0):
            told.next = now + told.pause
        elif needs is not None:
            told.needs, told.next = needs, now + LOOK
        else:
            told.next = None

    def _needs_anybody(self, waitable: Waitable) -> list[dict[str, Any]] | None:
        """What a sleep needs, where a message of any of several ends it; else None."""
        with self._process.context.engine.lock:
            needs = _Account(self._process).needs(waitable)
        wild = any(each["what"] in {RECEIVE, PROBE} and not each["every"] for each in needs or ())
        return needs if wild else None

    def since(self, thread: int) -> int | None:
        """When a thread's long sleep began, ns of the engine's clock; None if it is in none."""
        sleep = self._asleep.get(thread)
        return sleep[1] if sleep is not None else None

    def wakes(self) -> None:
        """A thread is awake."""
        self._asleep.pop(threading.get_ident(), None)

    def asked(self, question: int) -> None:
        """The launcher wants to know.

        Between two naps of a sleep the rank is awake for a moment. If it is asked then, it has to
        say by itself that it sleeps on: else the launcher takes it for one that runs.
        """
        said = self._say_now(question)
        if said["live"]:
            self._told.clear()

    def _say(self, question: int) -> bool:
        """Whether it is known what each thread needs; if not, that may come to be known."""
        said = self._say_now(question)
        return not said["live"] and all(wait["needs"] is not None for wait in said["waits"])

    def _say_now(self, question: int) -> dict[str, Any]:
        """Say how the rank stands; what that was."""
        said = standing_of(self._process, dict(self._asleep))
        self._tell(question, json.dumps(said, separators=(",", ":")).encode())
        return said


def standing_of(process: RankProcess, asleep: dict[int, tuple[Waitable, int]]) -> dict[str, Any]:
    """What there is to say of a rank.

    Args:
        process: the rank.
        asleep: by thread, what it sleeps for and since when.
    """
    live = _why_live(process, asleep)
    with process.context.engine.lock:
        account = _Account(process)
        if live:
            return {"live": live, "queued": account.queued()}
        waits = [account.sleep_of_thread(thread, *sleep) for thread, sleep in asleep.items()]
        said = {"live": "", "waits": waits, "tasks": account.tasks(), "held": account.held()}
        said["queued"] = account.queued()
        return said | account.messages()


def _why_live(process: RankProcess, asleep: dict[int, tuple[Waitable, int]]) -> str:
    """Why it may go on by itself."""
    if process.finalized:
        return "it has finalized"
    if not asleep:
        return "it is in no call that waits"
    threads = program_threads()
    others = [each for each in threads if each.ident not in asleep]
    # what waits for a thread of this process is woken by those that sleep here, or never
    if not all(waits_for_threads(each, threads) for each in others):
        return "another thread of it runs"
    if signal.getitimer(signal.ITIMER_REAL)[0]:
        return "it has set an alarm"
    return ""


class _Account:
    """Says what operations need, as JSON has it; the caller holds the rank's lock."""

    def __init__(self, process: RankProcess) -> None:
        self._process = process
        inquiries = process.context.inquiries
        self._long: list[LongWait] = inquiries.waits if inquiries is not None else []

    def sleep_of_thread(self, thread: int, waitable: Waitable, since: int) -> dict[str, Any]:
        """What would end a thread's sleep."""
        frame = sys._current_frames().get(thread)  # noqa: SLF001 - its only name
        return {"since": since, "at": place_of_program(frame), "needs": self.needs(waitable)}

    def needs(self, waitable: Waitable) -> list[dict[str, Any]] | None:
        """Those of which one suffices; None if that is not known."""
        each = waitable.waitables if isinstance(waitable, AnyOf) else [waitable]
        found = [self._need(one) for one in each]
        return None if None in found else [need for need in found if need is not None]

    def _need(self, waitable: Waitable) -> dict[str, Any] | None:
        if isinstance(waitable, Deferred) and waitable.waits_on is not None:
            return self._need(waitable.waits_on)
        for long in self._long:
            if waitable is long.over or waitable is long.served:
                return self._call(long)
        asked = waitable.predicate if isinstance(waitable, Watched) else waitable
        if isinstance(asked, Needing):
            needed = None if waitable.complete else asked.need()
            return self._need(needed) if isinstance(needed, Waitable) else self._told(needed)
        return self._told(self._process.pml.need(waitable))

    def _call(self, long: LongWait) -> dict[str, Any] | None:
        awaited = tuple(long.awaited())
        if not awaited or not long.word:
            return None
        if not number_of(long.word):
            return self._told(self._message(long))
        kept = long.communicator.order.kept(number_of(long.word))
        start = kept.starts if kept is not None else 0
        return self._told(Need(COLLECTIVE, long.communicator, awaited, word=long.word, start=start))

    def _message(self, long: LongWait) -> Need | None:
        """What a call of some members needs: a message of one. Who has begun it nobody counts."""
        need = self._process.pml.need(long.served)
        if need is None:
            return None
        named = f"{call_text(long.word)} of some members of {long.communicator.name}"
        return need._replace(detail=f"{named}, of which {ranks_in_words(need.ranks)} is one")

    def _told(self, need: Need | None) -> dict[str, Any] | None:
        """A need as JSON has it."""
        if need is None:
            return None
        found = _as_json(need)
        if self._process.context.recovery is not None:
            whose = need.communicator
            members = [*whose.procs, *whose.own]
            if isinstance(whose, Communicator):  # who has left it has said so before
                may = self._process.pml.who_may_send(whose)
                members = [whose.procs[place] for place in may]
                members += whose.own if whose.between else []
            found["revokers"] = sorted({proc.rank for proc in members})
        return found

    def held(self) -> list[list[Any]]:
        """Locks of windows."""
        found = []
        for module in list(self._process.context.windows):
            communicator = module.window.communicator
            for target, lock in module.held().items():
                whose = communicator.procs[target].rank
                found.append([communicator.context_id, whose, lock.alone, site_text(lock.site)])
        return found

    def queued(self) -> list[list[Any]]:
        """Who waits for locks that this rank gives."""
        found = []
        for module in list(self._process.context.windows):
            communicator = module.window.communicator
            queue = [[communicator.procs[rank].rank, alone] for rank, alone in module.queued()]
            if queue:
                found.append([communicator.context_id, queue])
        return found

    def tasks(self) -> list[dict[str, Any]]:
        """Collective calls under way beside what threads wait for, and these too."""
        found = []
        for long in self._long:
            need = self._call(long)
            if need is not None:
                found.append(need)
        return found

    def messages(self) -> dict[str, Any]:
        """What was begun, sent and received, by communicator."""
        begun: dict[str, int] = {}
        started: dict[str, list[tuple[int, int]]] = {}
        sent: dict[str, list[list[int]]] = {}
        received: dict[str, list[list[int]]] = {}
        unmatched: list[list[int]] = []
        revoked: list[int] = []
        for meeting in self._process.context.meetings:
            begun[str(meeting.context_id)] = meeting.number
        for communicator in list(self._process.communicators.values())[:MOST]:
            comm = communicator.context_id
            number = str(comm)  # as JSON has keys
            begun[number] = communicator.order.number
            if starts := communicator.order.starts():
                started[number] = starts[-MOST:]
            if communicator.revoked:
                revoked.append(comm)
            traffic = self._process.pml.traffic(communicator)
            if traffic is None:
                continue
            sent[number] = list(_by_rank(communicator, traffic.sent))
            received[number] = list(_by_rank(communicator, traffic.received))
            if communicator.served:
                continue  # a window's own messages are nothing that a program could receive
            for message in traffic.unmatched[:MOST]:
                source = communicator.procs[message.source].rank
                unmatched.append([comm, source, message.sequence, message.tag, message.size])
        found = {"begun": begun, "sent": sent, "received": received, "unmatched": unmatched}
        found |= {"started": started} if started else {}
        return {**found, "revoked": revoked} if revoked else found


def _by_rank(communicator: Communicator, counts: dict[int, int]) -> Iterator[list[int]]:
    for rank, count in counts.items():
        yield [communicator.procs[rank].rank, count]


def _as_json(need: Need) -> dict[str, Any]:
    communicator = need.communicator
    return {
        "what": need.what,
        "comm": communicator.context_id,
        "name": communicator.name,
        "ranks": [communicator.procs[rank].rank for rank in need.ranks],
        "every": need.every,
        "tag": need.tag,
        "sequence": need.sequence,
        "size": need.size,
        "number": number_of(need.word),
        "start": need.start,
        "target": communicator.procs[need.target].rank if need.target >= 0 else -1,
        "alone": need.alone,
        "text": _text(need),
    }


def _text(need: Need) -> str:
    name = need.communicator.name
    if need.detail:
        return need.detail
    if need.what == COLLECTIVE:
        start = f"start {need.start} of " if need.start else ""
        return f"{start}{call_text(need.word)}, collective call {number_of(need.word)} of {name}"
    if need.what in {RECEIVE, PROBE}:
        source = f"rank {need.ranks[0]}" if need.every else "any rank"
        return f"a message from {source} with {tag_text(need.tag)} in {name}{_left(need)}"
    if need.what == LOCK:
        return f"the lock of rank {need.target} of {name}"
    if need.what in {POST, COMPLETE}:
        return f"{_CALLS[need.what]} of {name} by {ranks_in_words(need.ranks)}"
    said = f"a receive for its {need.size} bytes with {tag_text(need.tag)}"
    return f"{said}, by rank {need.ranks[0]} of {name}"


def _left(need: Need) -> str:
    """Who could have sent what is wanted of anybody, and has left."""
    everybody = range(len(need.communicator.procs))
    left = [] if need.every else [rank for rank in everybody if rank not in need.ranks]
    return f"; {ranks_in_words(left)} sent all, and left" if left else ""
