"""What a traced rank knows of its calls, and how their events are written."""

from __future__ import annotations

import linecache
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from ompy.check.interposing import Within
from ompy.check.record import program_frame
from ompy.frameworks.collectives.coll_observing import CollObserver
from ompy.mpi.errors import MPIException
from ompy.trace.communicators import GROUP, members_text
from ompy.trace.program_lines import LINE

if TYPE_CHECKING:
    from ompy.frameworks.communicator import Communicator
    from ompy.trace.sink import Trace

LAYER: Final = "api"
NOWHERE: Final[tuple[str, int, str]] = ("", 0, "")
LINE_SHOWN: Final = 160  # arbitrary: letters of a line, as in reports of ranks


class Caller:
    """One rank's; an `Observer` of its API.

    Attributes:
        inside: whether this thread is in a call: what that calls itself is no call of a user.
        mark: of methods that have a handler in front.
        collectives: has communicators tell who serves their collectives.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.inside = Within()
        self.mark = "ompy_call_traced"
        self.collectives = CollObserver(trace)
        self._number = 0
        self._sites: dict[tuple[CodeType, int], tuple[str, int, str]] = {}
        self._lines: set[tuple[str, int]] = set()
        self._groups: dict[int, tuple[Any, int]] = {}

    def site(self, frame: FrameType | None) -> tuple[str, int, str]:
        """File, line and function of the innermost line of the program."""
        frame = program_frame(frame)
        if frame is None:
            return NOWHERE
        key = (frame.f_code, frame.f_lasti)
        found = self._sites.get(key)
        if found is None:
            code = frame.f_code
            found = self._sites[key] = (code.co_filename, frame.f_lineno or 0, code.co_name)
            self._write_line(*found[:2])
        return found

    def _write_line(self, file: str, line: int) -> None:
        """Write what a line of the program says, once: before the first call that stands there."""
        if not self._trace.active or (file, line) in self._lines:
            return
        self._lines.add((file, line))
        text = linecache.getline(file, line).strip()[:LINE_SHOWN]
        if text:  # there is none of what was given to exec
            self._trace.record(LAYER, LINE, file=file, line=line, text=text)

    def begin_call(self, at: tuple[str, int, str], name: str, fields: dict[str, object]) -> int:
        """Write that a call begins. Returns its number."""
        self._number += 1
        if self._trace.active:
            file, line, function = at
            where = {"file": file, "line": line, "function": function}
            self._trace.record(LAYER, "CALL", number=self._number, call=name, **fields, **where)
        return self._number

    def end_call(self, number: int, problem: BaseException | None) -> None:
        """Write that it has ended."""
        if not self._trace.active:
            return
        if problem is None:
            self._trace.record(LAYER, "RETURN", number=number)
            return
        word = type(problem).__name__
        if isinstance(problem, MPIException):
            word = str(problem).partition(":")[0]
        self._trace.record(LAYER, "RETURN", number=number, error=word)

    def group(self, communicator: Communicator) -> int:
        """A number that the members have in common, and hardly another group."""
        known = self._groups.get(id(communicator))
        if known is None or known[0] is not communicator:
            members = {proc.rank for proc in (*communicator.procs, *communicator.own)}
            digest = crc32(",".join(map(str, sorted(members))).encode())
            known = self._groups[id(communicator)] = (communicator, digest)
            self._write_group(communicator, digest)
        return known[1]

    def _write_group(self, communicator: Communicator, digest: int) -> None:
        """Write who is in a communicator, once: before its first call."""
        if not self._trace.active:
            return
        fields: dict[str, object] = {"context": communicator.context_id, "group": digest}
        fields["comm"] = str(communicator.name)
        fields["members"] = members_text([proc.rank for proc in communicator.own])
        if communicator.own is not communicator.procs:
            fields["remote"] = members_text([proc.rank for proc in communicator.procs])
        self._trace.record(LAYER, GROUP, **fields)

    def failed(self, _at: Any, _call: str, _problem: MPIException) -> None:
        """Nothing: the handler has written it."""

    def raised(self, _at: Any, _call: str, _problem: Exception) -> None:
        """Likewise."""
