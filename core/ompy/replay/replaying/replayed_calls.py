"""In front of the API of a rank that is replayed: each test says what it said."""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ompy.check.interposing import Within, interpose_class, interpose_functions
from ompy.data.constants import UNDEFINED
from ompy.mpi.point_to_point import request as requests_of_mpi
from ompy.mpi.point_to_point.completion import wait_for
from ompy.mpi.point_to_point.status import room_for
from ompy.replay.events import Completed, NotYet, Time
from ompy.replay.polled_answers import begin_replaying_polls
from ompy.replay.program_end import tell_of_end
from ompy.replay.recorded_calls import ALL, ANY, ONE, SOME, code_of, waits
from ompy.replay.threads.calls import WAITS_ALL, WAITS_ONE

if TYPE_CHECKING:
    from types import FrameType

    from ompy.engine.base import Engine
    from ompy.mpi.errors import MPIException
    from ompy.replay.follower import Follower
    from ompy.replay.replaying.replayed_pml import ReplayedPml


class Replay:
    """An `Observer` of a rank's API.

    Attributes:
        inside: of the calling thread.
        mark: of methods that have a handler in front.
        follower: the rank's.
        pml: the rank's.
    """

    def __init__(self, follower: Follower, pml: ReplayedPml) -> None:
        self.inside = Within()
        self.mark = "ompy_call_replayed"
        self.follower = follower
        self.pml = pml

    def site(self, _frame: FrameType | None) -> Any:
        """Nothing: the follower finds it when it needs it."""

    def failed(self, _at: Any, _call: str, _problem: MPIException) -> None:
        """Nothing: errors follow from the rest."""

    def raised(self, _at: Any, _call: str, _problem: Exception) -> None:
        """Likewise."""

    def is_complete(self, call: str, requests: Sequence[Any]) -> Completed | None:
        """What a test has said of requests, some of which are active; None for no.

        After a no communication has advanced, as it does in any test.
        """
        follower, number = self.follower, len(requests)
        event = follower.next_event(Completed(follower.prefix(), code_of(call), number, ()))
        if isinstance(event, NotYet):
            next(one for one in requests if waits(one))._inner.engine.progress()
            return None
        assert isinstance(event, Completed), "the questions agree"
        return event

    def wait_for_these(self, requests: Iterable[Any]) -> None:
        """Wait until these are complete, as they were."""
        for request in requests:
            state = request._inner
            if state is not None and not state.operation.complete:
                self.pml.expect_complete(state.operation)
                wait_for(state)


def begin_replaying_calls(follower: Follower, pml: ReplayedPml, engine: Engine) -> Replay:
    """Put the handlers in front, for good. Returns whose they are."""
    import ompy.MPI as MPI  # noqa: PLR0402 - as programs name it

    handlers: dict[str, Callable[..., Any]] = {
        **dict.fromkeys(ONE, _one),
        **dict.fromkeys(ALL, _all),
        **dict.fromkeys(ANY, _any),
        **dict.fromkeys(SOME, _some),
        **dict.fromkeys(WAITS_ONE, _wait_one),
        **dict.fromkeys(WAITS_ALL, _wait_all),
    }
    replay = Replay(follower, pml)
    for kind in (MPI.Request, MPI.Prequest):
        interpose_class(replay, kind, "", handlers, None)
    interpose_functions(replay, MPI, {"Wtime": _wtime})
    begin_replaying_polls(replay, follower, engine)
    tell_of_end(replay, follower.end_by)
    return replay


def _wtime(replay: Replay, _at: Any, _call: str, _original: Any) -> float:
    follower = replay.follower
    event = follower.next_event(Time(follower.prefix(), 0.0))
    assert isinstance(event, Time), "the questions agree"
    return event.seconds


def _wait_one(
    replay: Replay, _at: Any, _call: str, original: Any, request: Any, *args: Any, **named: Any
) -> Any:
    """The handler of `Wait`."""
    active = waits(request)
    replay.wait_for_these((request,))
    try:
        return original(request, *args, **named)
    finally:
        if active and replay.follower.threads is not None:
            replay.pml.tell_returned()


def _wait_all(
    replay: Replay, _at: Any, _call: str, original: Any, kind: Any, requests: Sequence[Any],
    *args: Any, **named: Any,
) -> Any:  # fmt: skip
    """The handler of `Waitall`."""
    requests = list(requests)
    active = any(map(waits, requests))
    replay.wait_for_these(requests)
    try:
        return original(kind, requests, *args, **named)
    finally:
        if active and replay.follower.threads is not None:
            replay.pml.tell_returned()


def _one(
    replay: Replay, _at: Any, call: str, original: Any, request: Any, *args: Any, **named: Any
) -> Any:
    """The handler of `Test` and `Get_status`."""
    if not waits(request):
        return original(request, *args, **named)
    if replay.is_complete(call, (request,)) is None:
        return (False, None) if call == "test" else False
    replay.wait_for_these((request,))
    return original(request, *args, **named)


def _all(
    replay: Replay, _at: Any, call: str, original: Any, kind: Any, requests: Sequence[Any],
    *args: Any, **named: Any,
) -> Any:  # fmt: skip
    """The handler of `Testall`."""
    requests = list(requests)
    if not any(map(waits, requests)):
        return original(kind, requests, *args, **named)
    if replay.is_complete(call, requests) is None:
        return (False, None) if call == "testall" else False
    replay.wait_for_these(requests)
    return original(kind, requests, *args, **named)


def _any(
    replay: Replay, _at: Any, call: str, original: Any, kind: Any, requests: Sequence[Any],
    status: Any = None,
) -> Any:  # fmt: skip
    """The handler of what says one place."""
    if not any(map(waits, requests)):
        return original(kind, requests, status)
    event = replay.is_complete(call, requests)
    if event is None:
        return (UNDEFINED, False, None) if call == "testany" else (UNDEFINED, False)
    place = event.places[0]
    replay.wait_for_these((requests[place],))
    if "et_status" in call:
        requests[place]._look(status)
        return place, True
    found = requests[place]._end(status)
    told = {"Waitany": place, "waitany": (place, found), "Testany": (place, True)}
    return told.get(call, (place, True, found))


def _some(
    replay: Replay, _at: Any, call: str, original: Any, kind: Any, requests: Sequence[Any],
    statuses: Any = None,
) -> Any:  # fmt: skip
    """The handler of what says several places."""
    if not any(map(waits, requests)):
        return original(kind, requests, statuses)
    event = replay.is_complete(call, requests)
    places = list(event.places) if event is not None else []
    replay.wait_for_these(requests[place] for place in places)
    if "et_status" in call:
        room = room_for(statuses, len(places))
        for place, status in zip(places, room, strict=False):
            requests[place]._look(status)
        return places
    found = requests_of_mpi._end_some(requests, places, statuses)
    return found if call[0].islower() else found[0]
