"""Waits for requests from a place where the same was waited for before: no handler is asked.

What a wait writes is the messages that came, and its own entry. Both have come before, but for the
numbers of the requests.
"""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Final

from ompy import raw
from ompy.check.again.known import Known, Place
from ompy.check.again.repeats import Repeat
from ompy.check.messages import got_of
from ompy.check.record import ASKED, REFUSED, program_frame
from ompy.check.under_way import Entry
from ompy.compiled import DECLARING, ccall, cclass, cfunc
from ompy.data.constants import ANY_SOURCE
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle
from ompy.mpi.point_to_point.objectrequest import ObjectState
from ompy.mpi.point_to_point.requeststate import RequestState
from ompy.mpi.point_to_point.status import Status

if TYPE_CHECKING:
    from ompy.check.checker import Checker
    from ompy.data.request import Request as Operation
if DECLARING:
    from ompy.check.again.known import Known, Place
    from ompy.check.again.repeats import Repeat
    from ompy.check.under_way import Entry
    from ompy.data.request import Request as Operation
    from ompy.mpi.handles import Handle
    from ompy.mpi.point_to_point.requeststate import RequestState

_frame = sys._getframe
MANY: Final[int] = 4096  # requests of one wait; arbitrary: more than one entry may have


@cclass
class Waits(Known):
    """The calls of one method of requests.

    Attributes:
        how: all, or test.
    """

    how: Any
    __slots__ = tuple(__annotations__)

    def __init__(self, checker: Checker, call: str, general: Any) -> None:
        """Know of none; the arguments are those of `Known`."""
        Known.__init__(self, checker, call, general)
        self.how = "test" if "est" in call else "all"

    def make_call(self, who: Any, argument: tuple[Any, ...]) -> Any:
        """Make a call with its handler, and remember its place."""
        result = self.general(who, *argument)
        recorder = self.recorder
        frame: Any = program_frame(_frame())
        if self.within.main or frame is None or not recorder.may_repeat(recorder.round):
            return result
        if raw.is_at(frame.f_code, frame.f_lasti):
            event = ("wait", recorder.site(frame), self.call, 0, 0, self.how)
            self.remember(Place(frame), event)
        return result

    @ccall
    def entry_of(self, request: Any) -> Entry | None:
        """What is known of a request that was begun again; None for any other."""
        if not isinstance(request, Handle):
            return None
        handle: Handle = request
        state = handle._inner
        if state is None:
            return None
        kind = type(state)
        if kind is not RequestState and kind is not ObjectState:
            return None
        return self.requests.of_state(state)

    @cfunc
    def over(self, entry: Entry, status: Any, result: Any) -> None:
        """A request is over that was begun again; the first time, if a call names it twice."""
        if not entry.active:
            return
        state: RequestState = entry.state
        operation: Operation = state.operation
        if entry.receives and not operation.cancelled:
            known: Repeat = entry.again
            if entry.wanted == ANY_SOURCE:
                self._came_from_any(entry, operation, status, result)
            else:
                self._came(known, entry, operation)
        self.requests.ended(entry, state)

    @cfunc
    def _came(self, known: Repeat, entry: Entry, operation: Operation) -> None:
        """A message has come from whom it was asked of."""
        recorder = self.recorder
        if (
            known.got_round != recorder.round
            or known.got_source != operation.source
            or known.got_tag != operation.tag
            or known.got_size != operation.received
        ):
            got = (operation.source, operation.tag, operation.received, ASKED, -1, ())
            known.got_shape = recorder.shape(("got", 0, got))
            known.got_round = recorder.round
            known.got_source, known.got_tag = operation.source, operation.tag
            known.got_size = operation.received
        recorder.repeat(known.got_shape, entry.number)

    @cfunc
    def _came_from_any(self, entry: Entry, operation: Operation, status: Any, result: Any) -> None:
        filled = Status()
        filled._fill(operation)
        received = result if entry.received is None else entry.received
        got = got_of(filled, status is not None, received, entry.wanted)
        self.recorder.write_again(("got", 0, got), entry.number, 0)

    @cfunc
    def awaited(self, place: Place, first: int, second: int, numbers: Any) -> None:
        """All requests of a call are over: one, two, or those of some numbers."""
        recorder = self.recorder
        if place.round != recorder.round:
            place.shape = recorder.shape(("wait", place.site, self.call, 0, 0, self.how))
            place.round = recorder.round
        recorder.left -= 1
        if numbers is not None:
            recorder.append_wait(place.shape, numbers)
        else:
            recorder.append_again(place.shape, first, second)

    @cfunc
    def leave(self, place: Place) -> None:
        """The program goes on."""
        if self.requests.unguarded and not self.is_quiet(place):
            self.requests.guard_all()

    def failed_all(self, place: Place, entries: list[Any], problem: Any) -> None:
        """A wait has ended with an error: its requests are over, as far as they are complete."""
        self.requests.guard_all()
        if isinstance(problem, MPIException):
            for entry in entries:
                state = entry.state
                if state.operation.complete:
                    filled = Status()
                    state.fill(filled)
                    self.requests.completed(entry, filled, False, None, REFUSED)
        self.failed(place, problem)


@cfunc
def _wait(waits: Waits, original: Any, request: Any, status: Any) -> Any:
    place = waits.here()
    entry = None if place is None else waits.entry_of(request)
    if place is None or entry is None:
        return waits.make_call(request, (status,))
    within = waits.within
    within.main = within.quiet = True
    try:
        result = original(request, status)
    except Exception as problem:
        waits.failed_all(place, [entry], problem)
        raise
    finally:
        within.main = within.quiet = False
    waits.over(entry, status, result)
    waits.awaited(place, entry.number, 0, None)
    waits.leave(place)
    return result


@cfunc
def _test(waits: Waits, original: Any, request: Any, status: Any) -> Any:
    place = waits.here()
    entry = None if place is None else waits.entry_of(request)
    if place is None or entry is None:
        return waits.make_call(request, (status,))
    within = waits.within
    within.main = within.quiet = True
    try:
        found = original(request, status)
    except Exception as problem:
        waits.failed_all(place, [entry], problem)
        raise
    finally:
        within.main = within.quiet = False
    pair = type(found) is tuple
    if found[0] if pair else found:
        waits.over(entry, status, found[1] if pair else None)
        waits.awaited(place, entry.number, 0, None)
    waits.leave(place)
    return found


@cfunc
def _entries_of(waits: Waits, requests: Any) -> Any:
    """What is known of requests that were begun again, all of them; None for any others."""
    if type(requests) is not list and type(requests) is not tuple:
        return None
    count: int = len(requests)
    if not count or count > MANY or waits.recorder.left <= 2 * count:
        return None
    entries: list[Entry] = []
    for request in requests:
        entry = waits.entry_of(request)
        if entry is None:
            return None
        entries.append(entry)
    return entries


@cfunc
def _wait_all(waits: Waits, original: Any, kind: Any, requests: Any, statuses: Any) -> Any:
    place = waits.here()
    found = None if place is None or statuses is not None else _entries_of(waits, requests)
    if place is None or found is None:
        return waits.make_call(kind, (requests, statuses))
    entries: list[Entry] = found
    within = waits.within
    within.main = within.quiet = True
    try:
        result = original(kind, requests)
    except Exception as problem:
        waits.failed_all(place, entries, problem)
        raise
    finally:
        within.main = within.quiet = False
    count: int = len(entries)
    numbers: list[int] | None = [] if count > 2 else None
    objects = type(result) is list
    for place_of in range(count):
        entry: Entry = entries[place_of]
        waits.over(entry, None, result[place_of] if objects else None)
        if numbers is not None:
            numbers.append(entry.number)
    one: Entry = entries[0]
    other: Entry = entries[count - 1]
    waits.awaited(place, one.number, other.number if count == 2 else 0, numbers)
    waits.leave(place)
    return result


def _waiting(waits: Waits, original: Any) -> Callable[..., Any]:
    """`Wait` and `wait`."""

    def method(request: Any, status: Any = None) -> Any:
        return _wait(waits, original, request, status)

    return method


def _testing(waits: Waits, original: Any) -> Callable[..., Any]:
    """`Test` and `test`."""

    def method(request: Any, status: Any = None) -> Any:
        return _test(waits, original, request, status)

    return method


def _waiting_for_all(waits: Waits, original: Any) -> Callable[..., Any]:
    """`Waitall` and `waitall`."""

    def method(kind: Any, requests: Any, statuses: Any = None) -> Any:
        return _wait_all(waits, original, kind, requests, statuses)

    return method


_METHODS: Final[dict[str, Any]] = {
    **dict.fromkeys(("Wait", "wait"), _waiting),
    **dict.fromkeys(("Test", "test"), _testing),
    **dict.fromkeys(("Waitall", "waitall"), _waiting_for_all),
}


def remember_waits(checker: Checker, kind: type) -> None:
    """Have waits from known places written without their handlers.

    Args:
        checker: the rank's.
        kind: a class of requests, whose methods have handlers in front.
    """
    for name, make in _METHODS.items():
        value = vars(kind).get(name)
        inner: Any = value.__func__ if isinstance(value, classmethod) else value
        if inner is None or not getattr(inner, checker.mark, False):
            continue
        original = inner.__wrapped__
        made = make(Waits(checker, f"request.{name}", inner), original)
        update_wrapper(made, original)
        setattr(made, checker.mark, True)
        made.ompy_remembered = True
        setattr(kind, name, classmethod(made) if isinstance(value, classmethod) else made)
