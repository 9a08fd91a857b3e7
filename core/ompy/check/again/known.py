"""The places that a method was called from, each with what it wrote: so that it is known again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from ompy import raw
from ompy.check.interposing import Within
from ompy.check.record import program_frame
from ompy.check.recorder import Recorder
from ompy.check.under_way import Requests
from ompy.compiled import DECLARING, ccall, cclass, cfunc
from ompy.mpi.errors import MPIException

if TYPE_CHECKING:
    from ompy.check.checker import Checker
if DECLARING:
    from ompy.check.interposing import Within
    from ompy.check.recorder import Recorder
    from ompy.check.under_way import Requests

_frame = sys._getframe  # noqa: SLF001 - its only name
PLACES: Final[int] = 256  # arbitrary: a loop has fewer


@cclass
class Place:
    """Where a call is made.

    Attributes:
        at: instruction of the program.
        changes: how many places were known when it was found not to be quiet.
        code: that it is of.
        quiet: no line behind it can touch memory before the next call.
        round: of the record, when its shape was written.
        shape: the entry's number.
        site: the line's number.
    """

    at: int
    changes: int
    code: Any
    quiet: bool
    round: int
    shape: int
    site: int
    __slots__ = tuple(__annotations__)

    def __init__(self, frame: Any) -> None:
        self.code, self.at = frame.f_code, frame.f_lasti
        self.quiet = False
        self.changes = self.round = self.shape = self.site = 0


@cclass
class Known:
    """The places from which one method was called.

    Attributes:
        call: as reports have it.
        checker: the rank's.
        general: makes the call with its handler.
        recorder, requests: of the rank.
        within: whether the main thread is in a call.
    """

    _known: dict[tuple[int, int], Place]
    _last: Any
    call: Any
    checker: Any
    general: Any
    recorder: Recorder
    requests: Requests
    within: Within
    __slots__ = tuple(__annotations__)

    def __init__(self, checker: Checker, call: str, general: Any) -> None:
        """Know of none.

        Args:
            checker: the rank's.
            call: as reports have it.
            general: makes the call with its handler.
        """
        self.call = call
        self.checker = checker
        self.general = general
        self._known = {}
        self._last = None
        self.recorder = checker.recorder
        self.requests = checker.requests
        self.within = checker.inside

    @ccall
    def here(self) -> Place | None:
        """The place that the program is at; None for a new one, or inside of a call."""
        known: Place | None = self._last
        if known is None or self.within.main:
            return None
        if not raw.is_at(known.code, known.at):
            known = self._of_place()
            if known is None:
                return None
            self._last = known
        return known if self.recorder.may_repeat(known.round) else None

    @cfunc
    def _of_place(self) -> Place | None:
        frame: Any = program_frame(_frame())
        if frame is None:
            return None
        found: Place | None = self._known.get((id(frame.f_code), frame.f_lasti))
        if found is None or not raw.is_at(found.code, found.at):
            return None
        return found

    @ccall
    def remember(self, known: Place, event: tuple[Any, ...]) -> bool:
        """A call was made from a place, and this entry written; whether it can be remembered."""
        recorder = self.recorder
        try:
            known.shape = recorder.shape(event)
        except TypeError:
            return False  # a list by rank has no hash
        known.round = recorder.round
        known.site = event[1]
        if len(self._known) >= PLACES:
            self._known.clear()
        self._known[id(known.code), known.at] = known
        self._last = known
        return True

    @ccall
    def is_quiet(self, known: Place) -> bool:
        """Whether no line behind a place can touch memory before the next call."""
        if known.quiet:
            return True
        changes: int = self.checker.places.changes
        if known.changes == changes:
            return False
        known.changes = changes
        frame: Any = program_frame(_frame())
        known.quiet = frame is not None and self.checker.places.is_quiet(frame)
        return known.quiet

    def failed(self, known: Place, problem: Exception) -> None:
        """A call has ended with an error."""
        if isinstance(problem, MPIException):
            self.checker.failed(known.site, self.call, problem)
        else:
            self.checker.raised(known.site, self.call, problem)
