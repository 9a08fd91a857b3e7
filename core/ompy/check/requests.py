"""Requests: when each begins, is waited for, freed, or left."""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ompy.check.checker import Checker
from ompy.check.messages import got_of
from ompy.check.record import REFUSED
from ompy.data.constants import ANY_SOURCE
from ompy.mpi.errors import MPIException
from ompy.mpi.point_to_point.status import Status

Handler = Callable[..., Any]
LEFT: Final = (
    "{call}: the request was never completed. MPI 4.1, 3.7.3: every nonblocking operation is "
    "waited for, or tested until it is over; until then its buffer is in use"
)
FREED: Final = (
    "{call}: an active request was freed, so nobody can know when its buffer may be used again "
    "(MPI 4.1, 3.7.3); wait for it instead"
)
KEPT: Final = (
    "{call}: the persistent request was never freed (MPI 4.1, 3.9); call its Free when it is not "
    "needed any more"
)
TAKEN: Final = (
    "{call}: the message was taken by a matched probe and never received (MPI 4.1, 3.8.2); call "
    "its Recv"
)


class Entry:
    """One request.

    Attributes:
        number: in the record; of a persistent one its latest start.
        at, call: where it was begun.
        kind: send, recv, coll, matched, or another.
        state: what its handle refers to.
        receives: it completes with a message.
        wanted: the source that was asked for.
        received: the buffer that is received into.
        other: number of the send of an exchange; 0 for none.
        template: of a persistent one: the entry that each start writes; else None.
        buffer: of a persistent one.
        active: it was begun, and has not been waited for.
        made: of a persistent one: where it was made, and by which call.
    """

    __slots__ = (
        "active", "at", "buffer", "call", "kind", "made", "number", "other", "received",
        "receives", "state", "template", "wanted",
    )  # fmt: skip

    def __init__(self, number: int, at: int, call: str, kind: str, state: Any) -> None:
        self.number = number
        self.at = at
        self.call = call
        self.kind = kind
        self.state = state
        self.receives = False
        self.wanted = ANY_SOURCE
        self.received: Any = None
        self.other = 0
        self.template: tuple[Any, ...] | None = None
        self.buffer: Any = None
        self.active = True
        self.made = (at, call)

    def numbers(self) -> list[int]:
        """All its numbers in the record."""
        return [self.number, self.other] if self.other else [self.number]


class Requests:
    """A rank's requests, by the id of their states."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._entries: dict[int, Entry] = {}
        self._messages: dict[int, Entry] = {}

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

    def taken(self, message: Any, at: int, call: str) -> Entry:
        """A message was taken by a matched probe."""
        state = message._inner
        entry = Entry(self._checker.number(), at, call, "taken", state)
        self._messages[id(state)] = entry
        return entry

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
            for spec, writes in template[1:]:
                checker.buffers.begin_use(entry, spec, writes=writes)
            return
        if not template[1]:
            return
        at = checker.recorder.start_site(at, *entry.made)
        if template[0] == "send":
            checker.write_again(("send", at, call, *template[1:], 0), entry.number)
            checker.buffers.begin_use(entry, entry.buffer, writes=False)
        else:
            checker.write_again(("recv", at, call, *template[1:], 0, None), entry.number)
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
            source, tag, size, known, digest = got_of(status, asked, received, entry.wanted)
            got = (source, tag, size, known | refused, digest)
            checker.write_again(("got", 0, got), entry.number)
        checker.buffers.end_use(entry)
        if entry.template is None:
            self._entries.pop(id(entry.state), None)

    def freed(self, entry: Entry, at: int, call: str) -> None:
        """A handle was freed."""
        if entry.active:
            text = FREED.format(call=entry.call)
            self._checker.add_finding("request-lifecycle", text, (at, call), (entry.at, entry.call))
        self._checker.buffers.end_use(entry, quietly=True)
        self._entries.pop(id(entry.state), None)

    def forget(self, entry: Entry) -> None:
        """What becomes of a request has been told: its memory is free."""
        self._checker.buffers.end_use(entry, quietly=True)
        self._entries.pop(id(entry.state), None)

    def are_none(self) -> bool:
        """Whether there are no requests, nor messages that were taken and not received."""
        return not self._entries and not self._messages

    def open_calls(self) -> list[tuple[int, str]]:
        """Site and call of what was begun and not completed."""
        begun = [entry for entry in self._entries.values() if entry.active]
        return [(entry.at, entry.call) for entry in (*begun, *self._messages.values())]

    def forget_all(self) -> None:
        """Know of none any more."""
        self._entries.clear()
        self._messages.clear()

    def finish(self) -> None:
        """The rank begins to finalize."""
        for entry in list(self._entries.values()):
            if entry.active:
                text = LEFT.format(call=entry.call)
                self._checker.add_finding("request-lifecycle", text, (entry.at, entry.call))
                self._checker.buffers.end_use(entry)
            elif entry.template is not None:
                at, call = entry.made
                self._checker.add_finding("leak", KEPT.format(call=call), (at, call))
        for entry in self._messages.values():
            text = TAKEN.format(call=entry.call)
            self._checker.add_finding("leak", text, (entry.at, entry.call))


def _entries(check: Checker, requests: Iterable[Any]) -> list[Entry | None]:
    return [check.requests.of(each) for each in requests]


def _numbers(entries: Iterable[Entry | None]) -> list[int]:
    return [n for entry in entries if entry is not None and entry.active for n in entry.numbers()]


def _wait(
    check: Checker, at: int, call: str, original: Any, request: Any, status: Status | None = None
) -> Any:
    """The handler of `Wait` and `wait`."""
    entries = [check.requests.of(request)]
    filled = Status() if status is None else status
    try:
        result = original(request, filled)
    except MPIException:  # it is over, too
        _completed(check, entries, [filled], status is not None, None, REFUSED)
        raise
    _all_over(check, at, call, entries, [filled], status is not None, [result], "all")
    return result


def _test(
    check: Checker, at: int, call: str, original: Any, request: Any, status: Status | None = None
) -> Any:
    """The handler of `Test` and `test`."""
    entries = [check.requests.of(request)]
    filled = Status() if status is None else status
    found = original(request, filled)
    flag, result = found if isinstance(found, tuple) else (found, None)
    if flag:
        _all_over(check, at, call, entries, [filled], status is not None, [result], "test")
    return found


def _wait_all(
    check: Checker, at: int, call: str, original: Any, kind: Any, requests: Sequence[Any],
    statuses: list[Status] | None = None,
) -> Any:  # fmt: skip
    """The handler of `Waitall` and `waitall`."""
    requests = list(requests)
    entries = _entries(check, requests)
    filled: list[Status] = [] if statuses is None else statuses
    try:
        result = original(kind, requests, filled)
    except MPIException:
        _completed(check, entries, filled, statuses is not None, None, REFUSED)
        raise
    _all_over(check, at, call, entries, filled, statuses is not None, result, "all")
    return result


def _test_all(
    check: Checker, at: int, call: str, original: Any, kind: Any, requests: Sequence[Any],
    statuses: list[Status] | None = None,
) -> Any:  # fmt: skip
    """The handler of `Testall` and `testall`."""
    requests = list(requests)
    entries = _entries(check, requests)
    filled: list[Status] = [] if statuses is None else statuses
    found = original(kind, requests, filled)
    flag, result = found if isinstance(found, tuple) else (found, None)
    if flag:
        _all_over(check, at, call, entries, filled, statuses is not None, result, "test")
    return found


def _completed(
    check: Checker, entries: Sequence[Entry | None], filled: Sequence[Status], asked: bool,
    result: Any, refused: int = 0,
) -> None:  # fmt: skip
    """Operations are over; statuses and results are in the order of the requests."""
    for place, entry in enumerate(entries):
        if entry is not None:
            status = filled[place] if place < len(filled) else None
            value = result[place] if isinstance(result, list) and place < len(result) else None
            check.requests.completed(entry, status, asked, value, refused)


def _all_over(
    check: Checker, at: int, call: str, entries: Sequence[Entry | None], filled: Sequence[Status],
    asked: bool, result: Any, how: str,
) -> None:  # fmt: skip
    """All requests that a call waited for, or tested, are over."""
    numbers = _numbers(entries)
    _completed(check, entries, filled, asked, result)
    if numbers:
        _write_wait(check, at, call, numbers, how)


def _write_wait(check: Checker, at: int, call: str, numbers: list[int], how: str) -> None:
    """All requests that a call waited for, or tested, are over."""
    if len(numbers) > 2:
        check.write_event("wait", at, call, numbers, numbers, how)
    else:
        check.write_again(("wait", at, call, 0, 0, how), *numbers)


def _wait_any(
    check: Checker, at: int, call: str, original: Any, kind: Any, requests: Sequence[Any],
    status: Status | None = None,
) -> Any:  # fmt: skip
    """The handler of `Waitany` and its like: place, flag or object, in any of their forms."""
    entries = _entries(check, requests)
    numbers = _numbers(entries)
    filled = Status() if status is None else status
    found = original(kind, requests, filled)
    place = found[0] if isinstance(found, tuple) else found
    how = "test" if "est" in call else "any"
    if isinstance(place, int) and 0 <= place < len(entries):
        entry = entries[place]
        done = _numbers([entry])
        if entry is not None:
            result = found[-1] if isinstance(found, tuple) else None
            check.requests.completed(entry, filled, True, result)
        check.write_event("wait", at, call, numbers, done, how)
    return found


def _wait_some(
    check: Checker, at: int, call: str, original: Any, kind: Any, requests: Sequence[Any],
    statuses: list[Status] | None = None,
) -> Any:  # fmt: skip
    """The handler of `Waitsome` and its like."""
    entries = _entries(check, requests)
    numbers = _numbers(entries)
    filled: list[Status] = [] if statuses is None else statuses
    found = original(kind, requests, filled)
    places, results = found if isinstance(found, tuple) else (found, None)
    if places:
        some = [entries[place] for place in places]
        done = _numbers(some)
        _completed(check, some, filled, True, results)
        check.write_event("wait", at, call, numbers, done, "test" if "est" in call else "any")
    return found


def watch_awaiting(checker: Checker, kind: Any) -> None:
    """Have `await request` known, too.

    Args:
        checker: the rank's.
        kind: the class of requests.
    """
    original = kind._awaited

    async def awaited(request: Any) -> Any:
        entry = checker.requests.of(request)
        numbers = _numbers([entry])
        result = await original(request)
        if entry is not None:
            status = Status() if entry.receives else None
            if status is not None:
                status._fill(entry.state.operation)
            checker.requests.completed(entry, status, False, result)
            checker.write_event("wait", entry.at, "await request", numbers, numbers, "test")
        return result

    kind._awaited = awaited


def _free(check: Checker, at: int, call: str, original: Any, request: Any) -> Any:
    """The handler of `Free` and `free`."""
    entry = check.requests.of(request)
    if entry is not None:
        check.requests.freed(entry, at, call)
    return original(request)


def _cancel(check: Checker, _at: int, _call: str, original: Any, request: Any) -> Any:
    """The handler of `Cancel`."""
    entry = check.requests.of(request)
    if entry is not None:
        check.write_event("cancel", entry.number)
    return original(request)


def _start(check: Checker, at: int, call: str, original: Any, request: Any) -> Any:
    """The handler of `Start`."""
    result = original(request)
    check.requests.started(request, at, call)
    return result


def _start_all(
    check: Checker, at: int, call: str, original: Any, kind: Any, requests: Sequence[Any]
) -> Any:
    """The handler of `Startall`."""
    requests = list(requests)
    result = original(kind, requests)
    for request in requests:
        check.requests.started(request, at, call)
    return result


HANDLERS: Final[dict[str, Handler]] = {
    **dict.fromkeys(("Wait", "wait"), _wait),
    **dict.fromkeys(("Test", "test"), _test),
    **dict.fromkeys(("Waitall", "waitall"), _wait_all),
    **dict.fromkeys(("Testall", "testall"), _test_all),
    **dict.fromkeys(("Waitany", "waitany", "Testany", "testany"), _wait_any),
    **dict.fromkeys(("Waitsome", "waitsome", "Testsome", "testsome"), _wait_some),
    **dict.fromkeys(("Free", "free"), _free),
    **dict.fromkeys(("Cancel", "cancel"), _cancel),
    "Start": _start,
    "Startall": _start_all,
}
