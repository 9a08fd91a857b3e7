"""In front of the API of a recorded rank, once its program has started a thread.

A wait that names its request is an event then: which of several threads goes on first is part of
what a program does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ompy.check.interposing import Handler, Observer, interpose_class
from ompy.replay.events import ALONE, Returned
from ompy.replay.program_end import COMMS
from ompy.replay.threads.names import MAIN, path_here

if TYPE_CHECKING:
    from ompy.replay.recorder import Recorder

WAITS_ONE: Final = ("Wait", "wait")
WAITS_ALL: Final = ("Waitall", "waitall")
MAKERS: Final = (
    "Dup", "Dup_with_info", "Idup", "Idup_with_info", "Clone", "Create", "Create_group", "Split",
    "Split_type", "Create_intercomm", "Merge", "Create_cart", "Create_graph", "Create_dist_graph",
    "Create_dist_graph_adjacent", "Sub", "Create_from_group",
)  # fmt: skip
MADE: Final = "made by a thread beside the main one: which number it has is not recorded"


def begin_recording_waits(observer: Observer, recorder: Recorder) -> None:
    """Put the handlers in front, for good."""
    import ompy.MPI as MPI  # noqa: PLR0402 - as programs name it
    from ompy.replay.recorded_calls import waits

    def returned() -> None:
        recorder.write_event(Returned(recorder.prefix()))

    def wait(
        _observer: Any, _at: Any, _call: str, original: Any, request: Any, *args: Any, **named: Any
    ) -> Any:
        if not waits(request):
            return original(request, *args, **named)
        try:
            return original(request, *args, **named)
        finally:
            returned()

    def wait_all(
        _observer: Any, _at: Any, _call: str, original: Any, kind: Any, requests: Sequence[Any],
        *args: Any, **named: Any,
    ) -> Any:  # fmt: skip
        requests = list(requests)
        if not any(map(waits, requests)):
            return original(kind, requests, *args, **named)
        try:
            return original(kind, requests, *args, **named)
        finally:
            returned()

    def make(_observer: Any, _at: Any, call: str, original: Any, *args: Any, **named: Any) -> Any:
        if path_here() != MAIN:
            recorder.note_unreplayable(ALONE, f"{call}: {MADE}")
        return original(*args, **named)

    handlers: dict[str, Handler] = {
        **dict.fromkeys(WAITS_ONE, wait),
        **dict.fromkeys(WAITS_ALL, wait_all),
    }
    for kind in (MPI.Request, MPI.Prequest):
        interpose_class(observer, kind, "", handlers, None)
    makers: dict[str, Handler] = dict.fromkeys(MAKERS, make)
    for name in COMMS:
        interpose_class(observer, getattr(MPI, name), "Comm.", makers, None)
