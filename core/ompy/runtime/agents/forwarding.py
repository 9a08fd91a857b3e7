"""What the ranks of one host write and read, between their pipes and the launcher.

Output goes on in whole lines, and only as fast as the launcher writes it: the agent has a
window of bytes it may send, which the launcher's credits open again. While it is shut the pipes
are not read, so the ranks wait in `write` and nobody's memory grows. What a rank writes to a
person it talks with goes on without the end of a line too, after a moment: prompts have none.
"""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections import deque
from typing import Final

from ompy.engine.reactor import Loop
from ompy.runtime.connections.channel import Channel
from ompy.runtime.connections.control import OUTPUT_WINDOW, READ_SIZE, Kind
from ompy.runtime.connections.lines import LineAssembler

INPUT_WINDOW: Final = 256 * 1024  # bytes; arbitrary: what the agent keeps of standard input
assert INPUT_WINDOW >= READ_SIZE
PROMPT_AFTER: Final = 0.1  # s; arbitrary: soon for a person, late for the pieces of one line


class _Stream:
    """One output pipe."""

    def __init__(self, rank: int, number: int, descriptor: int, *, prompts: bool) -> None:
        self.rank = rank
        self.prompts = prompts
        self.prompting = False
        self.number = number
        self.descriptor = descriptor
        self.lines = LineAssembler()
        self.open = True


class OutputForwarder:
    """Reads the output pipes of the ranks."""

    def __init__(self, loop: Loop, channel: Channel) -> None:
        self._loop = loop
        self._channel = channel
        self._streams: list[_Stream] = []
        self._window = OUTPUT_WINDOW

    def add(self, rank: int, stdout: int, stderr: int, *, prompts: bool) -> None:
        """Read the pipes of a rank from now on.

        Args:
            rank: in the world.
            stdout: read end, which then belongs to the forwarder.
            stderr: read end, likewise.
            prompts: send on the beginning of a line whose end does not come.
        """
        for number, descriptor in ((1, stdout), (2, stderr)):
            stream = _Stream(rank, number, descriptor, prompts=prompts)
            self._streams.append(stream)
            self._loop.add_reader(descriptor, self._readable, stream)

    def credit(self, count: int) -> None:
        """The launcher has written `count` bytes."""
        was_shut = self._window <= 0
        self._window += count
        if was_shut and self._window > 0:
            for stream in self._streams:
                if stream.open:
                    self._loop.add_reader(stream.descriptor, self._readable, stream)

    def _readable(self, stream: _Stream) -> None:
        self._read(stream)
        if self._window <= 0:
            for other in self._streams:
                if other.open:
                    self._loop.remove_reader(other.descriptor)

    def _read(self, stream: _Stream) -> int:
        """Read once. How much came."""
        try:
            data = os.read(stream.descriptor, READ_SIZE)
        except BlockingIOError:
            return 0
        self._send(stream, stream.lines.feed(data) if data else stream.lines.flush())
        if not data:
            self._close(stream)
        elif stream.prompts and stream.lines.held and not stream.prompting:
            stream.prompting = True
            self._loop.call_later(PROMPT_AFTER, self._prompt, stream)
        return len(data)

    def _prompt(self, stream: _Stream) -> None:
        stream.prompting = False
        self._send(stream, stream.lines.flush())

    def _send(self, stream: _Stream, lines: bytes) -> None:
        if lines:
            self._window -= len(lines)
            header = {"rank": stream.rank, "stream": stream.number}
            self._channel.send(Kind.OUTPUT, header, lines)

    def _close(self, stream: _Stream) -> None:
        stream.open = False
        self._loop.remove_reader(stream.descriptor)
        os.close(stream.descriptor)

    def drain(self, rank: int) -> None:
        """Send on what the rank has written until now, whatever the window."""
        for stream in self._streams:
            if stream.rank == rank:
                self._drain(stream)

    def _drain(self, stream: _Stream) -> None:
        """Only what is there already: its children may write for ever."""
        left = _readable_bytes(stream.descriptor) if stream.open else 0
        while left > 0 and (count := self._read(stream)):
            left -= count
        self._send(stream, stream.lines.flush())

    def close(self) -> None:
        """Send on what is there and close the pipes."""
        for stream in self._streams:
            self._drain(stream)
            if stream.open:
                self._close(stream)


def _readable_bytes(descriptor: int) -> int:
    answer = fcntl.ioctl(descriptor, termios.FIONREAD, struct.pack("i", 0))
    return int(struct.unpack("i", answer)[0])


class InputForwarder:
    """Writes the launcher's standard input into the pipe of one rank."""

    def __init__(self, loop: Loop, channel: Channel, descriptor: int) -> None:
        self._loop = loop
        self._channel = channel
        self._descriptor = descriptor
        self._queue: deque[bytes] = deque()
        self._ended = False
        self._open = True

    def feed(self, data: bytes) -> None:
        """Pass `data` on when the rank reads."""
        if self._open:
            self._queue.append(data)
            self._loop.add_writer(self._descriptor, self._writable)

    def end(self) -> None:
        """There is no more."""
        self._ended = True
        if self._open and not self._queue:
            self.close()

    def _writable(self) -> None:
        data = self._queue.popleft()
        try:
            written = os.write(self._descriptor, data)
        except BlockingIOError:
            written = 0
        except OSError:  # the rank has closed it or has gone
            self._channel.send(Kind.INPUT_CLOSED)
            self.close()
            return
        self._channel.send(Kind.INPUT_TAKEN, {"bytes": written})
        if written < len(data):
            self._queue.appendleft(data[written:])
        elif not self._queue:
            self._loop.remove_writer(self._descriptor)
            if self._ended:
                self.close()

    def close(self) -> None:
        """Close the pipe and forget what was not taken."""
        if self._open:
            self._open = False
            self._queue.clear()
            self._loop.remove_writer(self._descriptor)
            os.close(self._descriptor)
