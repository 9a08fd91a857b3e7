"""Requests that are under way: what is known of each, and whether its memory is guarded.

Memory is guarded by `buffers.py`: its lines are looked at, arrays are not writeable. What is begun
where no line can touch it before the next call (`again/places.py`) stays unguarded until then.
"""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from zlib import adler32

from ompy import raw
from ompy.check.buffers import KEPT
from ompy.check.messages import got_of
from ompy.compiled import DECLARING, U64, ccall, cclass, recycled
from ompy.data.constants import ANY_SOURCE
from ompy.data.errors import ERR_TRUNCATE
from ompy.mpi.buffers.addresses import address_of
from ompy.mpi.point_to_point.requeststate import RequestState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ompy.check.checker import Checker
    from ompy.mpi.point_to_point.status import Status
if DECLARING:
    from ompy.mpi.point_to_point.requeststate import RequestState


LEFT: Final = (
    "{call}: the request was never completed. MPI 4.1, 3.7.3: every nonblocking operation is "
    "waited for, or tested until it is over; until then its buffer is in use"
)
FREED: Final = (
    "{call}: an active request was freed, so nobody can know when its buffer may be used again "
    "(MPI 4.1, 3.7.3); wait for it instead"
)
NEVER_FREED: Final = (
    "{call}: the persistent request was never freed (MPI 4.1, 3.9); call its Free when it is not "
    "needed any more"
)
TAKEN: Final = (
    "{call}: the message was taken by a matched probe and never received (MPI 4.1, 3.8.2); call "
    "its Recv"
)


@recycled
@cclass
class Entry:
    """One request.

    Attributes:
        number: in the record; of a persistent one its latest start.
        at, call: where it was begun.
        kind: send, recv, coll, matched, or another.
        state: what its handle refers to.
        receives: it completes with a message.
        wanted: the source that was asked for.
        with_status: a matched probe was given a Status.
        received: the buffer that is received into.
        other: number of the send of an exchange; 0 for none.
        parts: of a partitioned send: which partitions are ready (`partitions.py`).
        template: of a persistent one: the entry that each start writes; else None.
        buffer: of a persistent one.
        active: it was begun, and has not been waited for.
        made: of a persistent one: where it was made, and by which call.
        again: the call that it repeats; None for another.
        memory: while it is unguarded: bytes that it uses, as a view for `raw`.
        spec: likewise, as the program gave it.
        before: what is sent from there; None of a receive.
        kept: of one that was begun again: what its state kept before it kept this.
    """

    active: bool
    again: Any
    at: int
    before: Any
    buffer: Any
    call: Any
    kept: Any
    kind: Any
    made: Any
    memory: Any
    number: int
    other: int
    parts: Any
    received: Any
    receives: bool
    spec: Any
    state: Any
    template: Any
    wanted: int
    with_status: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, number: int, at: int, call: Any, kind: Any, state: Any) -> None:
        self.number = number
        self.at = at
        self.call = call
        self.kind = kind
        self.state = state
        self.receives = False
        self.wanted = ANY_SOURCE
        self.with_status = False
        self.received = self.template = self.buffer = self.made = self.parts = None
        self.other = 0
        self.active = True
        self.again = self.memory = self.spec = self.before = self.kept = None

    def numbers(self) -> list[int]:
        """All its numbers in the record."""
        return [self.number, self.other] if self.other else [self.number]


@cclass
class Requests:
    """A rank's requests, by the id of their states.

    Attributes:
        again: those that were begun again; each is what its state keeps.
        unguarded: how many of these use memory that nobody looks after.
    """

    _checker: Any
    _entries: dict[int, Entry]
    _messages: dict[int, Entry]
    _thread: U64
    again: list[Entry]
    unguarded: int
    __slots__ = tuple(__annotations__)

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._entries = {}
        self._messages = {}
        self._thread = raw.thread()
        self.again = []
        self.unguarded = 0

    def begun(self, request: Any, at: int, call: str, kind: str) -> Entry:
        """A call has begun an operation."""
        state = request._inner
        entry = Entry(self._checker.number(), at, call, kind, state)
        if state is not None:
            self._entries[id(state)] = entry
        return entry

    def prepared(
        self, request: Any, at: int, call: str, template: tuple[Any, ...], buffer: Any
    ) -> None:
        """A persistent request was made."""
        entry = self.begun(request, at, call, template[0])
        entry.template, entry.buffer, entry.active = template, buffer, False
        entry.made = (at, call)

    def taken(self, message: Any, at: int, call: str) -> Entry:
        """A message was taken by a matched probe."""
        state = message._inner
        entry = Entry(self._checker.number(), at, call, "taken", state)
        self._messages[id(state)] = entry
        return entry

    def taken_as(self, state: Any) -> Entry | None:
        """What is known of a message that was taken and is not received yet."""
        found: Entry | None = self._messages.get(id(state))
        return found

    def message_received(self, state: Any, at: int, call: str) -> None:
        """It is received."""
        entry = self._messages.pop(id(state), None)
        if entry is not None:
            self._checker.write_event("wait", at, call, [entry.number], [entry.number], "test")

    def of(self, request: Any) -> Entry | None:
        """What is known of a request."""
        state = request._inner
        return None if state is None else self._entries.get(id(state))

    def started(self, request: Any, at: int, call: str) -> None:
        """A persistent request was started."""
        entry = self.of(request)
        if entry is None or entry.template is None:
            return
        checker, template = self._checker, entry.template
        entry.at, entry.call, entry.active = at, call, True
        entry.number = checker.number()
        if template[0] == "coll":
            made: int = checker.recorder.start_site(at, *entry.made)
            checker.write_again(("start", made, call, template[1], 0), entry.number)
            for spec, writes in template[2:]:
                checker.buffers.begin_use(entry, spec, writes=writes)
            return
        if entry.parts is not None:
            entry.parts.forget_ready()
        if not template[1]:
            return
        site: int = checker.recorder.start_site(at, *entry.made)
        if template[0] == "send":
            checker.write_again(("send", site, call, *template[1:], 0), entry.number)
            checker.buffers.begin_use(entry, entry.buffer, writes=False)
        else:
            checker.write_again(("recv", site, call, *template[1:], 0, None), entry.number)
            entry.receives, entry.received = True, entry.buffer
            entry.wanted = template[2]
            checker.buffers.begin_use(entry, entry.buffer, writes=True)

    def completed(
        self, entry: Entry, status: Status | None, asked: bool, result: Any, refused: int = 0
    ) -> None:
        """An operation is over, and its memory free; `refused` if it has failed."""
        if not entry.active:
            return
        entry.active = False
        checker = self._checker
        if entry.receives and status is not None and not status.Is_cancelled():
            received = result if entry.received is None else entry.received
            source, tag, size, known, *digests = got_of(status, asked, received, entry.wanted)
            if source == ANY_SOURCE and refused and status.Get_error() == ERR_TRUNCATE:
                # partitions of other sizes: a message came, and the request names whose
                source, tag = (entry.template or (0, 0, source, tag))[2:4]
            got = (source, tag, size, known | refused, *digests)
            checker.write_again(("got", 0, got), entry.number)
        checker.buffers.end_use(entry)
        if entry.parts is not None:
            entry.parts.end_use()
        if entry.template is None:
            self._entries.pop(id(entry.state), None)

    def freed(self, entry: Entry, at: int, call: str) -> None:
        """A handle was freed."""
        if entry.active:
            text = FREED.format(call=entry.call)
            self._checker.add_finding("request-lifecycle", text, (at, call), (entry.at, entry.call))
        self.forget(entry)

    def forget(self, entry: Entry) -> None:
        """What becomes of a request has been told: its memory is free."""
        self._checker.buffers.end_use(entry, quietly=True)
        if entry.parts is not None:
            entry.parts.end_use(quietly=True)
        self._entries.pop(id(entry.state), None)

    # what is begun again

    @ccall
    def of_state(self, state: RequestState) -> Entry | None:
        """What is known of the state of a request that was begun again; None for another."""
        kept = state.keep
        if type(kept) is not Entry:
            return None
        found: Entry = kept
        return found if found.state is state else None

    @ccall
    def begin_again(self, entry: Entry, state: RequestState) -> None:
        """An operation has begun again."""
        entry.state = state
        entry.kept = state.keep
        state.keep = entry
        self.again.append(entry)
        if entry.memory is not None:
            self.unguarded += 1

    @ccall
    def may_use(self, memory: Any, writes: bool) -> bool:
        """Whether a call may use memory beside what is unguarded."""
        for place in range(len(self.again)):
            entry: Entry = self.again[place]
            other = entry.memory
            if other is None or (entry.before is not None and not writes):
                continue
            if raw.overlaps(other, memory):
                # interpreted, that says no more than that they may
                begin, first = address_of(other), address_of(memory)
                if begin < first + raw.size(memory) and first < begin + raw.size(other):
                    return False
        return True

    @ccall
    def ended(self, entry: Entry, state: RequestState) -> None:
        """An operation that was begun again is over."""
        entry.active = False
        memory, before = entry.memory, entry.before
        if memory is not None and before is not None and contents_of(memory) != before:
            self.guard_all()
        again = self.again
        for place in range(len(again)):
            other: Entry = again[place]
            if other is entry:
                del again[place]
                state.keep = entry.state = None
                if memory is not None:
                    self.unguarded -= 1
                return
        # guarded since, perhaps by another thread that made a call: there its end is told
        self._checker.buffers.end_use(entry)
        self._entries.pop(id(state), None)

    @ccall
    def guard_all(self) -> None:
        """Look after all memory from now on: nothing is begun again any more."""
        entries: list[Entry] = list(self.again)
        self.again.clear()
        self.unguarded = 0
        watched: bool = raw.thread() == self._thread
        for entry in entries:
            spec, before, memory = entry.spec, entry.before, entry.memory
            entry.memory = entry.spec = entry.before = None
            entry.state.keep = entry.kept
            self._entries[id(entry.state)] = entry
            if memory is not None:
                self._checker.buffers.begin_use(
                    entry, spec, writes=before is None, before=before, watched=watched
                )

    # all of them

    def are_none(self) -> bool:
        """Whether there are no requests, nor messages that were taken and not received."""
        return not self._entries and not self._messages and not self.again

    def open_calls(self) -> list[tuple[int, str]]:
        """Site and call of what was begun and not completed."""
        begun = [entry for entry in (*self._entries.values(), *self.again) if entry.active]
        return [(entry.at, entry.call) for entry in (*begun, *self._messages.values())]

    def forget_all(self) -> None:
        """Know of none any more."""
        self._entries.clear()
        self._messages.clear()
        for entry in self.again:
            entry.state.keep = entry.kept
        self.again.clear()
        self.unguarded = 0

    def finish(self) -> None:
        """The rank begins to finalize."""
        self.guard_all()
        for entry in list(self._entries.values()):
            if entry.active:
                text = LEFT.format(call=entry.call)
                self._checker.add_finding("request-lifecycle", text, (entry.at, entry.call))
                self._checker.buffers.end_use(entry)
            elif entry.template is not None:
                at, call = entry.made
                self._checker.add_finding("leak", NEVER_FREED.format(call=call), (at, call))
        for entry in self._messages.values():
            text = TAKEN.format(call=entry.call)
            self._checker.add_finding("leak", text, (entry.at, entry.call))


@ccall
def contents_of(memory: Any) -> Any:
    """What is in some memory, to be compared; of what is large a checksum."""
    size: int = raw.size(memory)
    return raw.part(memory, 0, size) if size <= KEPT else adler32(memory)


@ccall
def entry_again(number: int, again: Any, at: int, call: Any, kind: Any) -> Entry:
    """An operation that begins again. Made without `__init__`, as every such call needs one."""
    made: Entry = Entry.__new__(Entry)
    made.number = number
    made.again = again
    made.at = at
    made.call = call
    made.kind = kind
    made.receives = False
    made.wanted = ANY_SOURCE
    made.with_status = False
    made.other = 0
    made.active = True
    made.received = made.template = made.buffer = made.made = made.parts = None
    made.memory = made.spec = made.before = made.state = made.kept = None
    return made


def started_collectives(entries: Iterable[Entry | None]) -> list[int]:
    """The numbers of persistent collective calls that are active."""
    active = [each for each in entries if each is not None and each.active]
    return [each.number for each in active if each.template and each.template[0] == "coll"]


def numbers_of(entries: Iterable[Entry | None]) -> list[int]:
    """The numbers of those that are active."""
    return [n for entry in entries if entry is not None and entry.active for n in entry.numbers()]
