"""The launcher's view of rails while the job runs: on the terminal, in a file, or in lines.

rich draws the table. Its `Live` is not used: it would want a thread, the standard streams and the
cursor, all of which are the job's here; `Printer.keep_below` puts lines where they belong.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ompy import outputs
from ompy.mca.reporting import Finding
from ompy.runtime.rails.rail_record import RailRecord, feed
from ompy.runtime.rails.rail_watch import RailWatch, said

if TYPE_CHECKING:
    from ompy.engine.reactor import Loop
    from ompy.runtime.launching.printer import Printer

DUMB: Final = frozenset({"", "dumb"})  # terminals, as TERM has it, whose cursor does not move
NOTHING: Final = (
    "--watch-rails: there was no rail to watch; ranks of one host talk through shared memory, "
    "--mca btl self,tcp takes the network"
)
SIZE: Final = os.terminal_size((80, 24))  # arbitrary: of one that does not say it


class RailView:
    """Takes what ranks tell of their rails, and shows and keeps it."""

    def __init__(
        self,
        loop: Loop,
        printer: Printer,
        hosts: Sequence[str],
        interval_ms: int,
        found: Callable[[Finding], object],
        *,
        show: bool,
        record: str,
    ) -> None:
        """Begin; time counts from now.

        Args:
            loop: the launcher's.
            printer: the launcher's.
            hosts: name of the host of each rank.
            interval_ms: between two samples of a rank.
            found: told of each change, where they are told in lines.
            show: on the terminal, or in lines where standard error is none.
            record: the file for a record; empty for none.
        """
        self._loop = loop
        self._printer = printer
        self._found = found
        self._watch = RailWatch(hosts, interval_ms / 1000)
        self._began = loop.time()
        self._show = show
        self._terminal = show and os.environ.get("TERM", "") not in DUMB and os.isatty(2)
        self._changes = 0  # of the watch's, that have been said
        self._name = record
        self._problem = ""
        self._file = None
        if record:
            try:
                self._file = outputs.open_text(record, buffering=1)  # closed by `end`
                self._record = RailRecord(self._file, list(hosts), interval_ms)
            except OSError as problem:
                self._give_up(problem)
        self._later()

    def carried(self, header: Mapping[str, Any], body: bytes) -> None:
        """A rank has told what its rails carried."""
        self._take("carried", {**header, "rails": json.loads(body)})

    def event(self, header: Mapping[str, Any]) -> None:
        """A rank has told of a rail that broke or healed."""
        self._take("rail", header)
        if self._show and not self._terminal:
            self._say_changes()

    def set_hosts(self, hosts: Sequence[str]) -> None:
        """The job has more ranks now; `hosts` is of all of them."""
        self._take("hosts", {"hosts": list(hosts)})

    def leave(self) -> None:
        """Something else has the terminal now: what stands there stays, the next goes below."""
        if self._terminal:
            self._printer.keep_below("")

    def end(self, *, failed: bool = False) -> str:
        """The job is over; the table stays as it is now. What there is to say about that, or ''."""
        if self._terminal:
            self._draw()
        self.leave()
        if self._show and not self._watch.rails and not failed:
            self._problem = NOTHING
        self._terminal = self._show = False
        if self._file is not None:
            self._write("end", {})
        if self._file is not None:
            try:
                self._file.close()
            except OSError as problem:
                self._give_up(problem)
        self._file = None
        return self._problem

    @property
    def _now(self) -> float:
        return self._loop.time() - self._began

    def _take(self, what: str, told: Mapping[str, Any]) -> None:
        feed(self._watch, {"what": what, "time": self._now, **told})
        self._write(what, told)

    def _write(self, what: str, told: Mapping[str, Any]) -> None:
        if self._file is not None:
            try:
                self._record.add(what, self._now, told)
            except OSError as problem:
                self._give_up(problem)

    def _give_up(self, problem: OSError) -> None:
        """Go on without the record. What is left of its last line is never written."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        self._file = None
        text = (
            f"ompy-run: warning: --record-rails {self._name}: {problem.strerror}; what rails carry "
            "from here on is not recorded, the job goes on\n"
        )
        self._found(Finding("record lost", text, "warning"))

    def _later(self) -> None:
        self._loop.call_later(self._watch.interval, self._tick)

    def _tick(self) -> None:
        self._watch.tick(self._now)
        if self._terminal:
            self._draw()
        elif self._show:
            self._say_changes()
        self._later()

    def _draw(self) -> None:
        from ompy.runtime.rails.rail_screen import rendered

        if not self._watch.rails:
            return
        try:
            size = os.get_terminal_size(2)
        except OSError:  # it has gone, or has none
            size = SIZE
        width, height = size.columns or SIZE.columns, size.lines or SIZE.lines
        letters = "utf" not in (getattr(sys.stderr, "encoding", None) or "").lower()
        text = rendered(
            self._watch, self._now, width=width, height=height, colour=True, letters=letters
        )
        self._printer.keep_below(text)

    def _say_changes(self) -> None:
        news = self._watch.changes[self._changes :]
        self._changes = len(self._watch.changes)
        for change in news:
            self._found(Finding("rail watched", f"ompy-run: {said(change)}\n"))
