"""The calls that start, wait for, test, free or cancel requests."""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ompy.check.checker import Checker
from ompy.check.record import REFUSED
from ompy.check.under_way import Entry, numbers_of, started_collectives
from ompy.mpi.errors import MPIException
from ompy.mpi.point_to_point.completion import is_active
from ompy.mpi.point_to_point.status import Status

Handler = Callable[..., Any]


def _entries(check: Checker, requests: Iterable[Any]) -> list[Entry | None]:
    return [check.requests.of(each) for each in requests]


def _wait(
    check: Checker, at: int, call: str, original: Any, request: Any, status: Status | None = None
) -> Any:
    """The handler of `Wait` and `wait`."""
    entries = [check.requests.of(request)]
    filled = Status() if status is None else status
    _begin_wait(check, at, call, entries)
    try:
        result = original(request, filled)
    except MPIException:  # it is over, too
        _completed(check, entries, [filled], status is not None, None, REFUSED)
        raise
    _all_over(check, at, call, entries, [filled], status is not None, [result], "all")
    return result


def _begin_wait(check: Checker, at: int, call: str, entries: Sequence[Entry | None]) -> None:
    """A wait may never end, where persistent collective calls are started in other orders."""
    numbers = started_collectives(entries)
    if len(numbers) > 2:
        check.write_event("awaits", at, call, numbers)
    elif numbers:
        check.write_again(("awaits", at, call, 0), *numbers)


def _test(
    check: Checker, at: int, call: str, original: Any, request: Any, status: Status | None = None
) -> Any:
    """The handler of `Test` and `test`."""
    entries = [check.requests.of(request)]
    filled = Status() if status is None else status
    try:
        found = original(request, filled)
    except MPIException:
        _failed(check, [request], entries, [filled], status is not None)
        raise
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
    _begin_wait(check, at, call, entries)
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
    try:
        found = original(kind, requests, filled)
    except MPIException:
        _completed(check, entries, filled, statuses is not None, None, REFUSED)
        raise
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


def _failed(
    check: Checker, requests: Iterable[Any], entries: Sequence[Entry | None],
    filled: Sequence[Status], asked: bool,
) -> None:  # fmt: skip
    """A call ended with an error: some of its requests are over, perhaps none.

    Args:
        check: the rank's.
        requests: as the call left them.
        entries: what is known of each.
        filled: statuses of those that are over, in their order.
        asked: the program gave them.
    """
    states = [each._inner for each in requests]
    over = [
        entry
        for entry, state in zip(entries, states, strict=True)
        if entry is not None and entry.active and (state is None or not is_active(state))
    ]
    _completed(check, over, filled, asked, None, REFUSED)


def _all_over(
    check: Checker, at: int, call: str, entries: Sequence[Entry | None], filled: Sequence[Status],
    asked: bool, result: Any, how: str,
) -> None:  # fmt: skip
    """All requests that a call waited for, or tested, are over."""
    numbers = numbers_of(entries)
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
    numbers = numbers_of(entries)
    filled = Status() if status is None else status
    try:
        found = original(kind, requests, filled)
    except MPIException:
        _failed(check, requests, entries, [filled], status is not None)
        raise
    place = found[0] if isinstance(found, tuple) else found
    how = "test" if "est" in call else "any"
    if isinstance(place, int) and 0 <= place < len(entries):
        entry = entries[place]
        done = numbers_of([entry])
        if entry is not None:
            result = found[-1] if isinstance(found, tuple) else None
            check.requests.completed(entry, filled, status is not None, result)
        check.write_event("wait", at, call, numbers, done, how)
    return found


def _wait_some(
    check: Checker, at: int, call: str, original: Any, kind: Any, requests: Sequence[Any],
    statuses: list[Status] | None = None,
) -> Any:  # fmt: skip
    """The handler of `Waitsome` and its like."""
    entries = _entries(check, requests)
    numbers = numbers_of(entries)
    filled: list[Status] = [] if statuses is None else statuses
    try:
        found = original(kind, requests, filled)
    except MPIException:
        _failed(check, requests, entries, filled, statuses is not None)
        raise
    places, results = found if isinstance(found, tuple) else (found, None)
    if places:
        some = [entries[place] for place in places]
        done = numbers_of(some)
        _completed(check, some, filled, statuses is not None, results)
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
        checker.requests.guard_all()
        entry = checker.requests.of(request)
        numbers = numbers_of([entry])
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
