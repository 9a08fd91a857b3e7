"""The launcher's standard output and error: whole lines of the ranks, tagged if wanted.

Nothing here waits: the loop is told when a stream that was full takes more. The descriptors are
shared with whoever started the launcher, so they are not made non-blocking; instead no more
is written than a pipe that polls writable is sure to take.
"""

from __future__ import annotations

import os
import select
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from ompy.engine.reactor import Loop

if TYPE_CHECKING:
    from ompy.runtime.launching.output_files import OutputCopies

_SURE: Final = select.PIPE_BUF  # bytes a pipe takes when it polls writable
NAMES: Final = {1: "stdout", 2: "stderr"}
_NOBODY: Final = -1
_ERASE: Final = b"\r\x1b[%dA\x1b[J"  # ECMA-48: up so many lines, then all below goes
REDRAW_S: Final = 0.05  # arbitrary: at most so often is what stands below drawn behind output
JOB_NUMBER: Final = 1  # reference openmpi.md 2.5.1: the first job of a launcher


class _Sink:
    """One of the launcher's output streams."""

    def __init__(
        self,
        loop: Loop,
        number: int,
        on_written: Callable[[int, int], None],
        on_change: Callable[[int, str | None], None],
    ) -> None:
        self._loop = loop
        self._number = number
        self._on_written = on_written
        self._on_change = on_change
        self._queue: deque[tuple[memoryview, int, int]] = deque()  # data, node, size received
        self._poll = select.poll()
        self._poll.register(number, select.POLLOUT)
        self._waiting = False
        self._broken = False
        self.unfinished = _NOBODY  # rank whose line has not ended
        self.idle = True

    def put(self, data: bytes, node: int, size: int) -> None:
        if self._broken:
            self._on_written(node, size)
            return
        self._queue.append((memoryview(data), node, size))
        self.idle = False
        if not self._waiting:
            self._write()

    def _write(self) -> None:
        try:
            while self._queue:
                if not self._poll.poll(0):
                    self._wait()
                    return
                self._write_some()
        except BlockingIOError:
            self._wait()
            return
        except OSError as problem:
            self._break("" if isinstance(problem, BrokenPipeError) else str(problem.strerror))
            return
        self._stop_waiting()
        self.idle = True
        self._on_change(self._number, None)

    def _write_some(self) -> None:
        data, node, size = self._queue[0]
        written = os.write(self._number, data[:_SURE])
        if written < len(data):
            self._queue[0] = (data[written:], node, size)
        else:
            self._queue.popleft()
            self._on_written(node, size)

    def _wait(self) -> None:
        if not self._waiting:
            self._waiting = True
            self._loop.add_writer(self._number, self._write)

    def _stop_waiting(self) -> None:
        if self._waiting:
            self._waiting = False
            self._loop.remove_writer(self._number)

    def _break(self, reason: str) -> None:
        self._stop_waiting()
        self._broken = True
        while self._queue:
            _, node, size = self._queue.popleft()
            self._on_written(node, size)
        self.idle = True
        self._on_change(self._number, reason)


class Printer:
    """Writes what ranks write."""

    def __init__(
        self,
        loop: Loop,
        *,
        tag: bool,
        timestamp: bool,
        on_written: Callable[[int, int], None],
        on_change: Callable[[int, str | None], None],
        files: OutputCopies | None = None,
    ) -> None:
        """Write to descriptors 1 and 2.

        Args:
            loop: watches them.
            tag: put `[job,rank]<stdout>:` before each line; the job is 1, that of ranks which were
                started later a higher one.
            timestamp: put the time before each line.
            on_written: told node and number of bytes received that need no more memory.
            on_change: told the number of a stream that has caught up (with None), or that
                is broken (with the reason, empty if its reader has gone).
            files: where it is written, too; None for nowhere.
        """
        self._sinks = {number: _Sink(loop, number, on_written, on_change) for number in NAMES}
        self._loop = loop
        self._on_written = on_written
        self._files = files
        self._tag = tag
        self._timestamp = timestamp
        self._firsts = [0]  # of each world the rank that is its first
        self._below = b""
        self._drawn = 0  # lines of it that stand there now
        self._drawn_at = 0.0

    def add_world(self, first: int, size: int) -> None:
        """There is one world more: its ranks are tagged as a job of their own, as in Open MPI."""
        self._firsts.append(first)
        if self._files is not None:
            try:
                self._files.add_world(size)
            except OSError as problem:
                self._lose_files(problem)

    @property
    def idle(self) -> bool:
        """Whether everything has been written."""
        return all(sink.idle for sink in self._sinks.values())

    def show(self, node: int, rank: int, stream: int, data: bytes) -> None:
        """Write lines of a rank. A line another rank left unfinished is ended first."""
        if self._files is not None and self._kept(rank, stream, data):
            self._on_written(node, len(data))
            return
        sink = self._sinks[stream]
        continues = sink.unfinished == rank
        text = self._tagged(data, rank, stream, continues) if self._prefixed else data
        if sink.unfinished not in {_NOBODY, rank}:
            text = b"\n" + text
        sink.unfinished = _NOBODY if data.endswith(b"\n") else rank
        self._put(stream, text, node, len(data))

    def _kept(self, rank: int, stream: int, data: bytes) -> bool:
        """Write to the files. Whether that is all that is wanted."""
        assert self._files is not None, "there are some"
        copied = self._files.asked.copied
        try:
            self._files.keep(rank, stream, data)
        except OSError as problem:
            self._lose_files(problem)
            return False
        return not copied

    def _lose_files(self, problem: OSError) -> None:
        """From now on everything goes to our own streams."""
        assert self._files is not None, "there were some"
        directory, self._files = self._files.asked.directory, None
        why = f"{problem.strerror}; what ranks write from now on is not kept there"
        self.say(f"ompy-run: warning: --output-filename {directory}: {why}\n")

    def say(self, text: str) -> None:
        """Write something of the launcher's own to standard error."""
        sinks = [*self._sinks.values()] if _one_terminal() else [self._sinks[2]]
        prefix = b"\n" if _end_lines(sinks) else b""
        self._put(2, prefix + text.encode(errors="surrogateescape"), 0, 0)

    def keep_below(self, text: str) -> None:
        """Keep lines below all else on the terminal behind standard error, in place of others.

        What is written meanwhile goes above them. Nothing of the terminal's state is changed, so
        whoever ends us leaves it as it was.

        Args:
            text: whole lines, none wider than the terminal; empty leaves those that are there.
        """
        self._below = text.encode(errors="replace")
        if not self._below:
            self._drawn = 0
        elif self._sinks[2].idle:  # otherwise the terminal is behind, and gets a later one
            self._put(2, b"", 0, 0, draw=True)

    def _put(self, stream: int, text: bytes, node: int, size: int, *, draw: bool = False) -> None:
        """Write to a stream; on the terminal, above what is kept below."""
        if not self._below or not (stream == 2 or _one_terminal()):
            self._sinks[stream].put(text, node, size)
            return
        erase = _ERASE % self._drawn if self._drawn else b""
        self._drawn = 0
        now = self._loop.time()
        if draw or (now - self._drawn_at >= REDRAW_S and text.endswith(b"\n")):
            text += (b"\n" if _end_lines(self._sinks.values()) else b"") + self._below
            self._drawn, self._drawn_at = self._below.count(b"\n"), now
        self._sinks[stream].put(erase + text, node, size)

    @property
    def _prefixed(self) -> bool:
        return self._tag or self._timestamp

    def _tagged(self, data: bytes, rank: int, stream: int, continues: bool) -> bytes:
        """Each line with its prefix (reference openmpi.md 2.5.1 and 2.5.2)."""
        world = bisect_right(self._firsts, rank) - 1
        who = f"[{JOB_NUMBER + world},{rank - self._firsts[world]}]" if self._tag else ""
        when = time.ctime() if self._timestamp else ""
        prefix = f"{when}{who}<{NAMES[stream]}>:".encode()
        lines = data.split(b"\n")
        last = lines.pop()
        text = b"".join(prefix + line + b"\n" for line in lines)
        if last:
            text += prefix + last
        return text.removeprefix(prefix) if continues else text


def _end_lines(sinks: Iterable[_Sink]) -> bool:
    """Take unfinished lines for ended, which the caller does. Whether there were any."""
    unfinished = [one for one in sinks if one.unfinished != _NOBODY]
    for one in unfinished:
        one.unfinished = _NOBODY
    return bool(unfinished)


def _one_terminal() -> bool:
    """Whether standard output and standard error are the same device."""
    try:
        return os.fstat(1).st_rdev == os.fstat(2).st_rdev != 0
    except OSError:  # one is closed
        return False
