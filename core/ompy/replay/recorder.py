"""What one rank was told, written down: the events of its recording."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING

from ompy import outputs
from ompy.replay.entries import DATA, EVENTS, Header
from ompy.replay.entry_writer import EntryWriter
from ompy.replay.events import (
    NEVER,
    U32,
    Comm,
    Ended,
    Entry,
    Event,
    Note,
    NothingFound,
    NotYet,
    Prefix,
    Raised,
    Time,
    bytes_of,
    counts_on,
    pack_matched,
)
from ompy.replay.job_file import file_of
from ompy.replay.program_lines import ProgramLines
from ompy.replay.threads.names import watch_starts
from ompy.replay.threads.recorded import STRANGER, RecordedThreads

if TYPE_CHECKING:
    from types import TracebackType

    from ompy.frameworks.communicator import Communicator
    from ompy.replay.counting_pml import CountingPml
    from ompy.replay.windows.service import RecordedService


class Recorder:
    """One rank's.

    Attributes:
        pml: counts its calls; set before the first event.
        events: are written there.
        data: takes the received bytes; None where they are not recorded.
        lines: of the program.
        service: hears what the rank serves in windows; None where bytes are not recorded.
        locks: why the order of locks is not known; empty where it is.
        threads: whose turn it is; None as long as the program has started no thread.
    """

    pml: CountingPml

    def __init__(self, directory: str, header: Header, *, data: bool) -> None:
        """Begin the files of a rank.

        Raises:
            OSError: they cannot be written.
        """
        rank = header.rank
        self.events = EntryWriter(file_of(directory, rank, EVENTS), header)
        self.data: EntryWriter | None = None
        if data:
            path = file_of(directory, rank, DATA)
            self.data = EntryWriter(path, header._replace(kind=DATA))
        self.lines = ProgramLines(self.write_entry)
        self.service: RecordedService | None = None
        self.locks = ""
        self.threads: RecordedThreads | None = None
        self._who = f"rank {rank}"
        self._comms: dict[int, tuple[Communicator, int]] = {}
        self._thread = get_ident()
        self._no: NothingFound | NotYet | None = None  # said last, and `_times` times since
        self._times = 0
        self._written = 0  # of these
        self._noted: set[str] = set()
        self._warned = False

    def watch_threads(self, begins: Callable[[], object]) -> None:
        """Write the order of calls down once the program has started a thread.

        Args:
            begins: called then.
        """

        def begin_turns(_path: str, _thread: object) -> None:
            if self.threads is None:
                self.threads = self.pml.threads = RecordedThreads(self)
                begins()

        watch_starts(begin_turns)

    def prefix(self) -> Prefix:
        """What the next event begins with; in turn it is found once more, where there are turns."""
        if self.threads is None:
            return self._prefix()
        with self.threads.lock:
            return self._prefix()

    def _prefix(self) -> Prefix:
        pml = self.pml
        return Prefix(self.lines.number_of_caller(), pml.calls & U32, pml.digest)

    def comm(self, communicator: Communicator) -> int:
        """The number of a communicator."""
        known = self._comms.get(id(communicator))
        if known is not None and known[0] is communicator:
            return known[1]
        number = len(self._comms) + 1
        self._comms[id(communicator)] = (communicator, number)
        rank, size, name = communicator.rank, communicator.size, communicator.name
        self.write_entry(Comm(number, communicator.context_id, rank, size, name))
        return number

    def write_event(self, event: Event) -> None:
        """Add what the program was told."""
        if self.threads is None:
            self.before_event()
            self.write_entry(event)
            return
        with self.threads:
            self.before_event()
            prefix = self._prefix()
            if isinstance(event, Raised):  # its line is that of the exception
                prefix = prefix._replace(site=event.prefix.site)
            self.write_entry(event._replace(prefix=prefix))

    def write_match(self, number: int, source: int, tag: int, length: int) -> None:
        """Add what a nonblocking receive has got: from within the PML, in any thread."""
        self._append_bytes(pack_matched(number, source, tag, length))

    def before_event(self) -> None:
        """An event comes: what was counted is whole, and the thread has to be the rank's."""
        if self._no is not None:
            self.end_noes()
        if self.threads is None and get_ident() != self._thread:
            self.note_unreplayable(NEVER, STRANGER)

    def write_no(self, event: NothingFound | NotYet) -> None:
        """Add that nothing was found, or complete. it has been said once."""
        if self.threads is None:
            self._count_no(event)
            return
        with self.threads:
            self._count_no(event._replace(prefix=self._prefix()))

    def _count_no(self, event: NothingFound | NotYet) -> None:
        if self._no is None or not counts_on(self._no, event):
            self.before_event()
            self._no, self._times, self._written = event, 0, 0
            self.events.held = True
        self._times += 1
        if self._times >= 2 * self._written:  # who is killed loses half of them at most
            self._write_noes()

    def _write_noes(self) -> None:
        assert self._no is not None, "there is one"
        self.write_entry(self._no._replace(times=self._times - self._written))
        self._written = self._times

    def end_noes(self) -> None:
        """A no that was counted is whole."""
        if self._no is not None and self._times > self._written:
            self._write_noes()
        self._no = None
        self.events.held = False

    def write_time(self, seconds: float) -> None:
        """Add what Wtime gave."""
        self.write_event(Time(self.prefix(), seconds))

    def note_unreplayable(self, scope: int, text: str) -> None:
        """The program does what cannot be replayed; said once of each text."""
        if text not in self._noted:
            self._noted.add(text)
            self.write_entry(Note(self.prefix().site, scope, text))

    def write_entry(self, entry: Entry) -> None:
        """Add an entry as it is."""
        self._append_bytes(bytes_of(entry))

    def _append_bytes(self, body: bytes) -> None:
        self.events.append_entry(body)
        if self.events.problem:
            self.warn_of_problem()

    def warn_of_problem(self) -> None:
        """Nothing more is written: say why, once."""
        self._warn(self.events.problem)

    def write_data(self, body: bytes) -> None:
        """Add to the received bytes."""
        assert self.data is not None, "they are recorded"
        self.data.append_entry(body)
        if self.data.problem:
            self._warn(self.data.problem)

    def _warn(self, problem: str) -> None:
        if not self._warned and not self.events.forked:
            self._warned = True
            text = f"--record: {problem}; the recording of this rank ends here"
            outputs.warn(text, ("ompy", self._who))

    def write_end(self, what: str, traceback: TracebackType | None) -> None:
        """Add that an exception, or Abort, ends the program."""
        prefix = self.prefix()
        if traceback is not None:
            prefix = prefix._replace(site=self.lines.number_of_raise(traceback))
        self.write_event(Raised(prefix, what))

    def finish(self) -> None:
        """The rank begins to finalize."""
        self.write_event(Ended(self.prefix()))

    def close(self) -> None:
        """Nothing more is received."""
        self.events.close()
        if self.data is not None:
            self.data.close()
