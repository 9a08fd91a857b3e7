"""The launcher's standard output and error: whole lines of the ranks, tagged if wanted.

Nothing here waits: the loop is told when a stream that was full takes more. The descriptors are
shared with whoever started the launcher, so they are not made non-blocking; instead no more
is written than a pipe that polls writable is sure to take.
"""

from __future__ import annotations

import os
import select
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from ompy.engine.reactor import Loop

_SURE: Final = select.PIPE_BUF  # bytes a pipe takes when it polls writable
NAMES: Final = {1: "stdout", 2: "stderr"}
_NOBODY: Final = -1
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
    ) -> None:
        """Write to descriptors 1 and 2.

        Args:
            loop: watches them.
            tag: put `[1,rank]<stdout>:` before each line.
            timestamp: put the time before each line.
            on_written: told node and number of bytes received that need no more memory.
            on_change: told the number of a stream that has caught up (with None), or that
                is broken (with the reason, empty if its reader has gone).
        """
        self._sinks = {number: _Sink(loop, number, on_written, on_change) for number in NAMES}
        self._tag = tag
        self._timestamp = timestamp

    @property
    def idle(self) -> bool:
        """Whether everything has been written."""
        return all(sink.idle for sink in self._sinks.values())

    def show(self, node: int, rank: int, stream: int, data: bytes) -> None:
        """Write lines of a rank. A line another rank left unfinished is ended first."""
        sink = self._sinks[stream]
        continues = sink.unfinished == rank
        text = self._tagged(data, rank, stream, continues) if self._prefixed else data
        if sink.unfinished not in {_NOBODY, rank}:
            text = b"\n" + text
        sink.unfinished = _NOBODY if data.endswith(b"\n") else rank
        sink.put(text, node, len(data))

    def say(self, text: str) -> None:
        """Write something of the launcher's own to standard error."""
        sink = self._sinks[2]
        prefix = b"" if sink.unfinished == _NOBODY else b"\n"
        sink.unfinished = _NOBODY
        sink.put(prefix + text.encode(errors="surrogateescape"), 0, 0)

    @property
    def _prefixed(self) -> bool:
        return self._tag or self._timestamp

    def _tagged(self, data: bytes, rank: int, stream: int, continues: bool) -> bytes:
        """Each line with its prefix (reference openmpi.md 2.5.1 and 2.5.2)."""
        who = f"[{JOB_NUMBER},{rank}]" if self._tag else ""
        when = time.ctime() if self._timestamp else ""
        prefix = f"{when}{who}<{NAMES[stream]}>:".encode()
        lines = data.split(b"\n")
        last = lines.pop()
        text = b"".join(prefix + line + b"\n" for line in lines)
        if last:
            text += prefix + last
        return text.removeprefix(prefix) if continues else text
