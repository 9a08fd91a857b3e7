"""Threads of a rank that is replayed: each begins its calls when it is its turn.

The turns are those of the recording (`recorded.py`). Whoever waits for its turn is as a thread that
is slow, so nothing else has to go on meanwhile. What is between two calls is the program's: a lock
that another thread has first, or a flag that is seen one poll later. So a poll may be told no more
or less often than it was, and a turn that does not come is said.
"""

from __future__ import annotations

import time
from threading import Condition, Thread, main_thread
from typing import TYPE_CHECKING, Final

from ompy.replay.events import (
    CALLS,
    IMPROBE,
    IPROBE,
    Completed,
    Event,
    Looked,
    NothingFound,
    NotYet,
    Turn,
)
from ompy.replay.threads.names import MAIN, path_here

if TYPE_CHECKING:
    from ompy.replay.follower import Follower

LOOKS_S: Final = 0.05  # s; arbitrary: between two looks at whether the turn can still come
GIVES_S: Final = 0.0002  # s; arbitrary: what others get to do where a poll finds nothing
NS: Final = 1_000_000_000
POLLS_AFTER: Final = NS  # arbitrary: longer than most threads sleep, short for who waits for it
COURTESY: Final = 2_000_000  # ns; arbitrary: a few lines of Python, and little for each turn


class FollowedThreads:
    """One rank's, from when its program has started a thread.

    Attributes:
        changed: its lock is had by whoever's turn it is; told when that is another one's.
    """

    def __init__(self, follower: Follower, patience: int) -> None:
        """It is the main thread's turn.

        Args:
            follower: of the rank.
            patience: s, how long who comes next may be elsewhere.
        """
        self.changed = Condition()
        self._follower = follower
        self._patience = patience * NS
        self._owner = MAIN
        self._counts: dict[str, tuple[int, int]] = {}  # of threads whose turn it is not
        self._threads: dict[str, Thread] = {}
        self._waiting: set[str] = set()
        self._leaves = ""  # the thread that is in the program's lines behind its turn,
        self._until = 0  # ns, and how long the next one waits for it
        self._used = (
            MAIN,
            -1,
            0,
        )  # whose processor time was looked at, how much it was, since when
        self._polls_since = 0  # ns; where a poll is told no that was not in the recording
        with self.changed:
            self._advance()

    def add_thread(self, path: str, thread: Thread) -> None:
        """The program starts one."""
        with self.changed:
            self._threads[path] = thread

    def __enter__(self) -> None:
        """Begin a turn, when it comes. Does not return if it cannot come."""
        self.changed.acquire()
        try:
            self.goes_on()
            self._await_turn(path_here())
        except BaseException:
            self.changed.release()
            raise

    def __exit__(self, *problem: object) -> None:
        """What was to be done in turn is done."""
        self._advance()
        self.changed.release()

    def goes_on(self) -> None:
        """The calling thread is in MPI again: nobody waits for what it does before."""
        with self.changed:
            if path_here() == self._leaves:
                self._leaves = ""
                self.changed.notify_all()

    def _advance(self) -> None:
        """Hand over where the recording does."""
        follower = self._follower
        events, pml = follower.recording.events, follower.pml
        while follower.position < len(events):
            event = events[follower.position]
            if isinstance(event, NothingFound | NotYet) and pml.calls > event.prefix.calls:
                follower.skip_noes()  # the program polls no more
                continue
            if not isinstance(event, Turn) or pml.calls < event.prefix.calls:
                return
            if (pml.calls, pml.digest) != event.prefix[1:]:
                follower.threads_differ(
                    self._owner,
                    f"of its {pml.calls} sends and receives until here, peers or tags differ "
                    "from those of the recording",
                )
            self._counts[self._owner] = (pml.calls, pml.digest)
            self._leaves, self._until = self._owner, time.monotonic_ns() + COURTESY
            self._owner = follower.recording.threads.get(event.thread, "")
            pml.calls, pml.digest = self._counts.get(self._owner, (0, 0))
            follower.position += 1
            self.changed.notify_all()

    # --- waiting

    def _await_turn(self, path: str) -> None:
        while self._owner != path or self._courtesy():
            if self._owner == path:
                continue
            follower = self._follower
            if path != MAIN and path not in follower.recording.threads.values():
                what = f"thread {path or 'that threading.Thread did not start'} calls MPI"
                follower.threads_differ(path, f"{what}, and did not then")
            self._waiting.add(path)
            if self._skip_noes_of_ended():
                continue
            why = self._never_comes()
            if why:
                follower.threads_differ(path, why)
            self.changed.wait(LOOKS_S)
        self._waiting.discard(path)

    def _skip_noes_of_ended(self) -> bool:
        """Leave out what a thread that has ended did not ask for. Whether there was something."""
        follower, thread = self._follower, self._threads.get(self._owner)
        events = follower.recording.events
        if thread is None or _lives(thread) or follower.position >= len(events):
            return False
        if not isinstance(events[follower.position], NothingFound | NotYet):
            return False
        follower.skip_noes()
        self._advance()
        return True

    def may_poll(self) -> bool:
        """Whether a poll is this thread's turn; if not it finds nothing.

        It waits for that, unless the thread whose turn it is sleeps outside of MPI: perhaps it
        waits for this one to end its loop.
        """
        path = path_here()
        with self.changed:
            self.goes_on()
            while self._owner != path:
                if self._slept_ns(self._owner) > POLLS_AFTER:
                    return False
                self.changed.wait(LOOKS_S)
        return True

    def _courtesy(self) -> bool:
        """Let who has returned do first what its program does with that. Whether it was waited for.

        That orders what is between two calls as far as it is short.
        """
        left = self._until - time.monotonic_ns()
        if not self._leaves or left <= 0:
            self._leaves = ""
            return False
        self.changed.wait(left / NS)
        return True

    def _never_comes(self) -> str:
        """Why the turn of who waits cannot come, in words; empty if it can."""
        owner = self._owner
        thread = self._threads.get(owner)
        if owner != MAIN and thread is None:
            above = owner.rpartition(".")[0]
            parent = self._threads.get(above)
            if above in self._waiting or (parent is not None and not _lives(parent)):
                return f"thread {owner}, whose call comes now, is never started"
            return ""
        if thread is not None and not _lives(thread):
            return f"thread {owner}, whose call comes now, has ended"
        return self._sleeps_elsewhere(owner)

    def _sleeps_elsewhere(self, owner: str) -> str:
        """Whether the thread whose turn it is has slept outside of MPI all the time."""
        if self._slept_ns(owner) < self._patience:
            return ""
        return (
            f"thread {owner}, whose call comes now, sleeps outside of MPI for "
            f"{self._patience // NS} s: perhaps for a lock that it had first then"
        )

    def _slept_ns(self, path: str) -> int:
        """How long a thread has not computed, ns, as far as it was looked at."""
        now = time.monotonic_ns()
        used = _processor_time(self._threads.get(path))
        if used < 0 or self._used[:2] != (path, used):
            self._used = (path, used, now)
        return now - self._used[2]

    # --- polls

    def answer_poll(self, asked: Event) -> Event | None:
        """No, where the program polls and did not; the caller's turn it is.

        Noes of the recording that the program does not ask for are left out.

        Args:
            asked: what the program asks.

        Returns:
            The answer; None where the recording has it.
        """
        follower = self._follower
        events = follower.recording.events
        while follower.position < len(events):
            event = events[follower.position]
            if not isinstance(event, NothingFound | NotYet) or follower.asks_for(asked, event):
                break
            follower.skip_noes()
            path = self._owner
            self._advance()
            self._await_turn(path)
        else:
            return None
        no = no_of(asked)
        if isinstance(event, Turn) and no is None:
            follower.threads_differ(self._owner, "the calls differ")
        if no is None or follower.asks_for(asked, event):
            self._polls_since = 0
            return None
        now = time.monotonic_ns()
        self._polls_since = self._polls_since or now
        if now - self._polls_since > self._patience:
            return None  # then it differs
        self.changed.wait(GIVES_S)
        return no


def _lives(thread: Thread) -> bool:
    """Whether a thread may still call MPI: it runs, or is about to."""
    return thread.is_alive() or thread.ident is None


def no_of(asked: Event) -> Event | None:
    """What a poll is told that finds nothing; None if it is no poll."""
    match asked:
        case Looked() if asked.how in (IPROBE, IMPROBE):
            prefix, how, comm, source, tag, *_ = asked
            return NothingFound(prefix, how, comm, source, tag, 1)
        case Completed() if not CALLS[asked.call].lower().startswith("wait"):
            return NotYet(asked.prefix, asked.call, asked.requests, 1)
    return None


def _processor_time(thread: Thread | None) -> int:
    """Ns that a thread, or the main one, has computed; -1 if the kernel does not say."""
    native = (thread or main_thread()).native_id
    try:
        with open(f"/proc/self/task/{native}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return -1
