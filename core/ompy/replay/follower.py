"""Where a rank is in its recording: the next event, compared with what the program does."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread, get_ident
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from ompy.replay.events import (
    U32,
    Answered,
    Cancelled,
    Completed,
    Ended,
    Event,
    File,
    Locked,
    Looked,
    NothingFound,
    NotYet,
    Posted,
    Prefix,
    Raised,
    Site,
    Unlocked,
)
from ompy.replay.program_lines import ProgramLines, shown_path
from ompy.replay.recording import Place, RankRecording, asked_of
from ompy.replay.threads.followed import FollowedThreads, no_of
from ompy.replay.threads.names import watch_starts

if TYPE_CHECKING:
    from types import TracebackType

    from ompy.frameworks.communicator import Communicator
    from ompy.replay.counting_pml import CountingPml


class Outcome(Protocol):
    """What becomes of a replay that cannot go on."""

    def diverged(self, text: str) -> NoReturn:
        """The program does something else than it did."""

    def ended(self, text: str) -> NoReturn:
        """The rank is where its recording ends: it was killed there."""

    def mended(self, text: str) -> NoReturn:
        """The recording ends by an exception, and the program goes on: it has been changed."""


def question_of(event: Event) -> tuple[Any, ...]:
    """What the program has asked, without what it was told."""
    question: tuple[Any, ...] = (type(event),)
    match event:
        case Looked() | NothingFound():
            question = (Looked, event.how, event.comm, event.wanted_source, event.wanted_tag)
        case Posted():
            question = (Posted, event.comm, event.number, event.wanted_source, event.wanted_tag)
        case Cancelled():
            question = (Cancelled, event.number)
        case Completed() | NotYet():
            question = (Completed, event.call, event.requests)
        case Locked():
            question = (Locked, event.target, event.exclusive)
        case Unlocked():
            question = (Unlocked, event.target)
        case Answered():
            question = (Answered, event.question)
        case Raised():
            question = (Raised, event.what)
    return question


class Follower:
    """One rank's.

    Attributes:
        recording: of the rank.
        pml: counts its calls; set before the first event.
        lines: of the program as it is now.
        position: events that are over.
        stop_at: called before this event, counted from 1; 0 for none.
        on_stop: what is called there.
        threads: whose turn it is; None as long as the program has started no thread.
    """

    pml: CountingPml

    def __init__(self, recording: RankRecording, outcome: Outcome) -> None:
        self.recording = recording
        self.lines = ProgramLines(self._take_line)
        self.position = 0
        self.stop_at = 0
        self.on_stop: Callable[[], object] = lambda: None
        self._outcome = outcome
        self._left = 0  # how often the event at the position is still told
        self._places: dict[int, Place] = {}
        self._files: dict[int, File] = {}
        self._comms: dict[int, tuple[Communicator, int]] = {}
        self._thread = get_ident()
        self.threads: FollowedThreads | None = None

    def watch_threads(self, patience: int) -> None:
        """Have threads make their calls in the order of the recording, once there are some.

        Args:
            patience: s, how long who comes next may be elsewhere.
        """

        def begins(path: str, thread: Thread) -> None:
            if self.threads is None:
                self.threads = self.pml.threads = FollowedThreads(self, patience)
            self.threads.add_thread(path, thread)

        watch_starts(begins)

    def _take_line(self, line: File | Site) -> None:
        if isinstance(line, File):
            self._files[line.number] = line
        else:
            file = self._files[line.file]
            place = Place(file.name, line.line, line.function, file.check)
            self._places[line.number] = place

    def prefix(self) -> Prefix:
        """What an event of the program begins with, now.

        In turn it is found once more, where there are turns.
        """
        if self.threads is None:
            return self._prefix()
        with self.threads.changed:
            return self._prefix()

    def _prefix(self) -> Prefix:
        pml = self.pml
        return Prefix(self.lines.number_of_caller(), pml.calls & U32, pml.digest)

    def comm(self, communicator: Communicator) -> int:
        """The number of a communicator: as the recorder counts them."""
        known = self._comms.get(id(communicator))
        if known is not None and known[0] is communicator:
            return known[1]
        number = len(self._comms) + 1
        self._comms[id(communicator)] = (communicator, number)
        return number

    def next_event(self, asked: Event) -> Event:
        """What the program was told when it asked this; the answers in `asked` do not matter.

        Does not return if that is not known, or if it has asked something else.
        """
        if self.threads is None:
            return self._next_event(asked)
        prefix = asked.prefix
        no = no_of(asked)
        if no is not None and not self.threads.may_poll():
            return no
        with self.threads:
            if isinstance(asked, Raised):  # its line is that of the exception
                prefix = self._prefix()._replace(site=prefix.site)
            else:
                prefix = self._prefix()
            asked = asked._replace(prefix=prefix)
            return self.threads.answer_poll(asked) or self._next_event(asked)

    def asks_for(self, asked: Event, event: Event) -> bool:
        """Whether an event of the recording is what the program asks now, in the same state."""
        same = asked.prefix[1:] == event.prefix[1:]
        return same and question_of(asked) == question_of(event)

    def skip_noes(self) -> None:
        """The event here is not told any more."""
        self._left = 0
        self.position += 1

    def _next_event(self, asked: Event) -> Event:
        events = self.recording.events
        if 0 < self.stop_at <= self.position + 1 and not self._left:
            self.stop_at = 0
            self.on_stop()
        if self.position >= len(events):
            self.over(asked)
        event = events[self.position]
        if isinstance(event, Raised) and not isinstance(asked, Raised) and self._has_changed():
            self._mended(asked, event)
        reason = self._difference(asked, event)
        if reason:
            self._outcome.diverged(self._report(asked, event, reason))
        if isinstance(event, NothingFound | NotYet):
            self._left = (self._left or event.times) - 1
            self.position += not self._left
        else:
            self.position += 1
        return event

    def fails_here(self, prefix: Prefix) -> bool:
        """Whether a call has left no event because it failed, and the program ended by that.

        Args:
            prefix: of the call, as it is now.
        """
        events = self.recording.events
        if self.threads is not None or self.position >= len(events):
            return False
        event = events[self.position]
        same = prefix[1:] == event.prefix[1:] and not self._has_changed()
        return (
            same and isinstance(event, Raised) and self._same_place(prefix.site, event.prefix.site)
        )

    def over(self, asked: Event) -> NoReturn:
        """The recording ends before this call."""
        place = self.shown(self._places.get(asked.prefix.site))
        self._outcome.ended(f"the recording of rank {self.recording.rank} ends at {place}, "
                            f"in {asked_of(asked)}")  # fmt: skip

    def _has_changed(self) -> bool:
        """Whether a file of the program is another one than it was."""
        now = {file.name: file.check for file in self._files.values()}
        then = {place.file: place.check for place in self.recording.places.values()}
        return any(then.get(name, check) != check for name, check in now.items())

    def _mended(self, asked: Event, event: Raised) -> NoReturn:
        rank = self.recording.rank
        self._outcome.mended(
            f"the recording of rank {rank} ends here, by {event.what}; the program has been "
            f"changed, and goes on at {self.shown(self._places.get(asked.prefix.site))}"
        )

    def stands_at(self, what: str) -> NoReturn:
        """The program waits for what it never got: its recording is over here."""
        rank, place = self.recording.rank, self._now()
        left = len(self.recording.events) - self.position
        if left and self.fails_here(self.prefix()):
            self._outcome.ended(
                f"the recording of rank {rank} ends at {place}, in {what}: it failed"
            )
        if left and self.recording.complete:
            text = f"rank {rank} waits for ever at {place}, in {what}: in the recording it did not"
            self._outcome.diverged(text)
        self._outcome.ended(f"the recording of rank {rank} ends at {place}, in {what}")

    def bytes_differ(self, message: str, how: str) -> None:
        """A message has other bytes than it had. Does not return, unless that is no wonder."""
        place = self._now()
        if self._has_changed():
            return
        self._outcome.diverged(
            f"rank {self.recording.rank} does not get what it got, in the message {message}: "
            f"{how}\n  now at {place}"
        )

    def served_differ(self, origin: int, now: str, then: str) -> NoReturn:
        """Another rank has this one do something else in a window than it did.

        Args:
            origin: that rank, in the window.
            now: what, in words.
            then: what, in words.
        """
        self._outcome.diverged(
            f"rank {self.recording.rank} is asked for {now} in a window by rank {origin} of it, "
            f"in the recording for {then}\n  now at {self._now()}"
        )

    def answers_differ(self, event: Event, now: str, then: str) -> NoReturn:
        """The launcher has others meet than those who met.

        Args:
            event: of the recording.
            now: whom, in words.
            then: whom, in words.
        """
        place = self.shown(self.recording.place_of_site(event.prefix.site))
        self._outcome.diverged(
            f"rank {self.recording.rank} meets others than it did, at event {self.position}\n"
            f"  now:            {self._now()}: {now}\n"
            f"  in the recording: {place}: {then}"
        )

    def threads_differ(self, path: str, why: str) -> NoReturn:
        """Threads of the program do not call MPI in the order in which they did.

        Args:
            path: of the calling one.
            why: in words.
        """
        events, then = self.recording.events, "nothing more"
        if self.position < len(events):
            event = events[self.position]
            place = self.shown(self.recording.place_of_site(event.prefix.site))
            then = f"{place}: {self.recording.said_of(event)}"
        self._outcome.diverged(
            f"rank {self.recording.rank} does not do what it did, at event {self.position + 1}: "
            f"{why}\n"
            f"  now:            {self._now()}: a call of thread {path}\n"
            f"  in the recording: {then}"
        )

    def _now(self) -> str:
        return self.shown(self._places.get(self.lines.number_of_caller()))

    # --- differences

    def _difference(self, asked: Event, event: Event) -> str:
        """What is not as it was; empty if nothing is."""
        if self.threads is None and get_ident() != self._thread:
            return "another thread of the rank calls MPI"
        if question_of(asked) != question_of(event):
            return "the calls differ"
        now, then = asked.prefix, event.prefix
        if now.calls != then.calls:
            return (
                f"until here it has begun {now.calls} sends and receives that name their peer, "
                f"in the recording {then.calls}"
            )
        if now.digest != then.digest:
            return (
                f"of the {now.calls} sends and receives until here, peers or tags differ from "
                "those of the recording"
            )
        if not isinstance(asked, Ended | Raised) and not self._same_place(now.site, then.site):
            return "the lines differ"
        return ""

    def _same_place(self, now: int, then: int) -> bool:
        here, there = self._places.get(now), self.recording.place_of_site(then)
        if here is None:
            return not there.file
        if here.check != there.check or not here.check:  # the file has changed, or is none
            return here.function == there.function
        return (here.line, here.function) == (there.line, there.function)

    def _report(self, asked: Event, event: Event, reason: str) -> str:
        here = self.shown(self._places.get(asked.prefix.site))
        there = self.shown(self.recording.place_of_site(event.prefix.site))
        return (
            f"rank {self.recording.rank} does not do what it did, at event {self.position + 1}: "
            f"{reason}\n"
            f"  now:            {here}: {asked_of(asked)}\n"
            f"  in the recording: {there}: {asked_of(event)}"
        )

    def shown(self, place: Place | None) -> str:
        """A line of the program, for people."""
        if place is None or not place.file:
            return "no line of the program"
        name = "" if place.function == "<module>" else f" in {place.function}"
        return f"{shown_path(place.file)}:{place.line}{name}"

    def end_by(self, what: str, traceback: TracebackType | None) -> None:
        """An exception, or Abort, ends the program."""
        prefix = self.prefix()
        if traceback is not None:
            prefix = prefix._replace(site=self.lines.number_of_raise(traceback))
        self.next_event(Raised(prefix, what))

    def finish(self) -> None:
        """The rank begins to finalize."""
        self.next_event(Ended(self.prefix()))
