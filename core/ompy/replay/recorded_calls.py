"""In front of the API of a rank that is recorded: which operations a call has said are complete.

As a profiling library does (MPI 4.1, 15.2); what a call calls itself goes straight to the methods.
"""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from ompy.check.interposing import Handler, Within, interpose_class, interpose_functions
from ompy.mpi.errors import MPIException
from ompy.mpi.point_to_point.completion import is_active
from ompy.replay.events import ALONE, CALLS, NEVER, Completed, NotYet
from ompy.replay.polled_answers import begin_recording_polls, record_test
from ompy.replay.program_end import COMMS, tell_of_end
from ompy.replay.threads.calls import begin_recording_waits
from ompy.replay.windows.locks import begin_recording_locks
from ompy.replay.windows.notes import begin_recording_windows

if TYPE_CHECKING:
    from ompy.replay.recorder import Recorder

CODES: Final = {name: code for code, name in enumerate(CALLS)}
ONE: Final = ("Test", "test", "Get_status", "get_status")
ALL: Final = ("Testall", "testall", "Get_status_all", "get_status_all")
ANY: Final = ("Testany", "testany", "Get_status_any", "get_status_any", "Waitany", "waitany")
SOME: Final = (
    "Testsome", "testsome", "Get_status_some", "get_status_some", "Waitsome", "waitsome",
)  # fmt: skip
AWAITED: Final = "await request: what else its loop does meanwhile is not recorded"
# what a rank alone cannot do, or no replay in the same order: class, call, scope, why
NOTES: Final = (
    ("File", "Open", ALONE, "it opens a file that ranks share"),
    ("Comm", "Join", ALONE, "it talks over a socket"),
    *(("Comm", name, ALONE, "it asks who has died") for name in (
        "Get_failed", "Ack_failed", "Agree", "Iagree", "Shrink", "Ishrink",
    )),
)  # fmt: skip


class Calls:
    """An `Observer` of a rank's API.

    Attributes:
        inside: of the calling thread.
        mark: of methods that have a handler in front.
        recorder: the rank's.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.inside = Within()
        self.mark = "ompy_call_recorded"
        self.recorder = recorder

    def site(self, _frame: FrameType | None) -> Any:
        """Nothing: the recorder finds it when it needs it."""

    def failed(self, _at: Any, _call: str, _problem: MPIException) -> None:
        """Nothing: errors follow from the rest."""

    def raised(self, _at: Any, _call: str, _problem: Exception) -> None:
        """Likewise."""


def begin_recording_calls(recorder: Recorder) -> None:
    """Put the handlers in front, for good."""
    import ompy.MPI as MPI  # noqa: PLR0402 - as programs name it

    calls = Calls(recorder)
    handlers: dict[str, Handler] = {
        **dict.fromkeys(ONE, _one),
        **dict.fromkeys(ALL, _all),
        **dict.fromkeys((*ANY, *SOME), _several),
    }
    for kind in (MPI.Request, MPI.Prequest):
        interpose_class(calls, kind, "", handlers, None)
    interpose_functions(calls, MPI, {"Wtime": _wtime})
    for name, kinds in _KINDS.items():
        notes = {call: _note(scope, why) for of, call, scope, why in NOTES if of == name}
        for each in kinds:
            interpose_class(calls, getattr(MPI, each), f"{name}.", notes, None)
    _watch_awaiting(recorder, MPI.Request)
    tell_of_end(calls, recorder.write_end)
    begin_recording_locks(calls, recorder)
    begin_recording_polls(calls, recorder)
    threaded = begin_recording_windows(calls, recorder)

    def begin_threads() -> None:
        begin_recording_waits(calls, recorder)
        threaded()

    recorder.watch_threads(begin_threads)


_KINDS: Final = {
    "File": ("File",),
    "Comm": COMMS,
}


def _note(scope: int, why: str) -> Handler:
    def handle(calls: Calls, _at: Any, name: str, original: Any, *args: Any, **named: Any) -> Any:
        calls.recorder.note_unreplayable(scope, f"{name}: {why}")
        return original(*args, **named)

    return handle


def _watch_awaiting(recorder: Recorder, kind: Any) -> None:
    original = kind._awaited

    async def awaited(request: Any) -> Any:
        recorder.note_unreplayable(NEVER, AWAITED)
        return await original(request)

    kind._awaited = awaited


def waits(request: Any) -> bool:
    """Whether there is something to wait for."""
    state = request._inner
    return state is not None and state.world is not None and is_active(state)


def code_of(call: str) -> int:
    """The number of a call in a recording."""
    return CODES[call]


def _wtime(calls: Calls, _at: Any, _call: str, original: Any) -> float:
    seconds: float = original()
    calls.recorder.write_time(seconds)
    return seconds


def _one(
    calls: Calls, _at: Any, call: str, original: Any, request: Any, *args: Any, **named: Any
) -> Any:
    """The handler of `Test` and `Get_status`."""
    if not waits(request):
        return original(request, *args, **named)
    ask = partial(original, request, *args, **named)
    return record_test(calls.recorder, CODES[call], 1, (0,), ask)


def _all(
    calls: Calls, _at: Any, call: str, original: Any, kind: Any, requests: Sequence[Any],
    *args: Any, **named: Any,
) -> Any:  # fmt: skip
    """The handler of `Testall`."""
    requests = list(requests)
    if not any(map(waits, requests)):
        return original(kind, requests, *args, **named)
    ask = partial(original, kind, requests, *args, **named)
    return record_test(calls.recorder, CODES[call], len(requests), (), ask)


def _several(
    calls: Calls, _at: Any, call: str, original: Any, kind: Any, requests: Sequence[Any],
    *args: Any, **named: Any,
) -> Any:  # fmt: skip
    """The handler of what says which ones."""
    requests = list(requests)
    active = [place for place, request in enumerate(requests) if waits(request)]
    if not active:
        return original(kind, requests, *args, **named)
    recorder, code, number = calls.recorder, CODES[call], len(requests)
    try:
        found = original(kind, requests, *args, **named)
    except MPIException:
        over = tuple(place for place in active if not waits(requests[place]))
        recorder.write_event(Completed(recorder.prefix(), code, number, over))
        raise
    places = _places(found[0] if isinstance(found, tuple) else found)
    if places:
        recorder.write_event(Completed(recorder.prefix(), code, number, places))
    else:
        recorder.write_no(NotYet(recorder.prefix(), code, number, 1))
    return found


def _places(said: int | list[int] | None) -> tuple[int, ...]:
    """The places that a call has said."""
    if isinstance(said, int):
        return (said,) if said >= 0 else ()
    return tuple(said or ())
