"""In front of a recorded rank's windows: counts its steps, and notes what cannot be replayed."""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ompy.check.interposing import Handler, Observer, interpose_class
from ompy.frameworks.osc import DYNAMIC, SHARED
from ompy.replay.events import ALONE, ORDER
from ompy.replay.windows.service import THREADED
from ompy.replay.windows.steps import MAKERS, Steps, has_all_messages

if TYPE_CHECKING:
    from ompy.replay.recorder import Recorder

# what finds out who was first
ASKING: Final = (
    "Lock_all", "Fetch_and_op", "Compare_and_swap", "Get_accumulate", "Rget_accumulate",
)  # fmt: skip
FIRST: Final = "what it finds hangs on who was first, which only --record-data records"
SHARES: Final = "others load from its memory and store there, which no call tells"
ADDRESSES: Final = "its places are addresses, and they are others in each process"
OTHER_WAYS: Final = "not all its operations are messages (see --mca osc)"


def begin_recording_windows(observer: Observer, recorder: Recorder) -> Callable[[], object]:
    """Put the handlers in front, for good. Returns what to call when a thread is started."""
    import ompy.MPI as MPI  # noqa: PLR0402 - as programs name it

    service = recorder.service
    steps = Steps(service) if service is not None else None

    def make(_observer: Any, _at: Any, call: str, original: Any, *args: Any, **named: Any) -> Any:
        if steps is None:
            return original(*args, **named)
        window = steps.make_window(original, *args, **named)
        why = _why_not_alone(window)
        if why:
            recorder.note_unreplayable(ALONE, f"{call}: {why}")
        if recorder.threads is not None or window._inner.progress is not None:
            note_threads(call)
        return window

    def ask(
        _observer: Any, _at: Any, call: str, original: Any, window: Any, *args: Any, **named: Any
    ) -> Any:
        if steps is None or not has_all_messages(window):
            recorder.note_unreplayable(ORDER, f"{call}: {FIRST}")
        return original(window, *args, **named)

    def note_threads(call: str) -> None:
        recorder.note_unreplayable(ALONE, f"{call}: {THREADED}")
        recorder.note_unreplayable(ORDER, f"windows: {THREADED}")

    def thread_begins() -> None:
        if service is not None and service.windows:
            note_threads("Thread.start, with a window")

    handlers: dict[str, Handler] = {**dict.fromkeys(MAKERS, make), **dict.fromkeys(ASKING, ask)}
    interpose_class(observer, MPI.Win, "Win.", handlers, None)
    return thread_begins


def _why_not_alone(window: Any) -> str:
    """Why a rank with it cannot run without the others; empty if it can."""
    flavor = window._inner.window.flavor
    if flavor == SHARED:
        return SHARES
    if flavor == DYNAMIC:
        return ADDRESSES
    return "" if has_all_messages(window) else OTHER_WAYS
