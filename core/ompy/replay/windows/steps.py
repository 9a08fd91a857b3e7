"""Counts the calls of a rank that has windows: in front of the API, from the first window on.

Others are served within calls. So between two counts the program has not looked at its memory.
"""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

from types import FrameType
from typing import Any, Final

from ompy.check.interposing import Handler, Observer, Within, interpose_class
from ompy.mpi.errors import MPIException
from ompy.replay.program_end import COMMS
from ompy.replay.windows.service import StepCounter

KINDS: Final = (*COMMS, "Win", "Request", "Prequest", "Message", "File")
MAKERS: Final = ("Create", "Allocate", "Allocate_shared", "Create_dynamic")  # of windows


class Steps:
    """An `Observer` of a rank's API, whose calls are steps.

    Attributes:
        inside: of the calling thread.
        mark: of methods that have a handler in front.
    """

    def __init__(self, service: StepCounter) -> None:
        self.inside = Within()
        self.mark = "ompy_call_counted"
        self._service = service
        self._begun = False

    def site(self, _frame: FrameType | None) -> Any:
        """Nothing."""

    def failed(self, _at: Any, _call: str, _problem: MPIException) -> None:
        """Nothing: it is a step as any other."""

    def raised(self, _at: Any, _call: str, _problem: Exception) -> None:
        """Likewise."""

    def make_window(self, make: Handler, *args: Any, **named: Any) -> Any:
        """Make a window: a step. The first one has all later calls counted."""
        if self._begun:  # who counts calls is in front of who makes it
            return make(*args, **named)
        self._begun = True
        self._begin()
        self.inside.on = True
        try:
            return make(*args, **named)
        finally:
            self.inside.on = False
            self._service.end_step()

    def _begin(self) -> None:
        import ompy.MPI as MPI  # noqa: PLR0402 - as programs name it

        def count(_steps: Any, _at: Any, _call: str, call: Any, *args: Any, **named: Any) -> Any:
            try:
                return call(*args, **named)
            finally:
                self._service.end_step()

        for name in KINDS:
            interpose_class(self, getattr(MPI, name), "", {}, count)


def has_all_messages(window: Any) -> bool:
    """Whether no operation in a window goes another way than by messages."""
    return bool(getattr(getattr(window._inner, "module", None), "all_messages", False))


def is_served_in_order(window: Any) -> bool:
    """Whether each rank serves its commands in the order of a recording."""
    service = window._inner.comm.communicator.context.service
    return service is not None and has_all_messages(window)


def begin_counting(observer: Observer, service: StepCounter) -> None:
    """Have the calls of a replayed rank counted as those of a recorded one are."""
    import ompy.MPI as MPI  # noqa: PLR0402 - as programs name it

    steps = Steps(service)

    def make(_observer: Any, _at: Any, _call: str, original: Any, *args: Any, **named: Any) -> Any:
        return steps.make_window(original, *args, **named)

    interpose_class(observer, MPI.Win, "Win.", dict.fromkeys(MAKERS, make), None)
