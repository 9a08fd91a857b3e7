"""Control messages over a socket that an event loop watches."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ompy.engine.reactor import Loop
from ompy.runtime.connections.control import ControlError, Decoder, Frame, Kind, encode
from ompy.runtime.connections.frame_io import receive_frames, send_some
from ompy.runtime.connections.pipes import Connection, writing_descriptor


class Channel:
    """One control connection. Sending never waits: what does not fit now is kept.

    Attributes:
        unsent: bytes kept.
    """

    def __init__(
        self,
        loop: Loop,
        connection: Connection,
        on_frame: Callable[[Frame], None],
        on_end: Callable[[str], None],
        decoder: Decoder | None = None,
    ) -> None:
        """Watch `connection`, which then belongs to the channel.

        Args:
            loop: watches.
            connection: a Unix stream socket, or a pair of pipes.
            on_frame: called with each message.
            on_end: called once when the other end is gone or talks nonsense, with the reason,
                empty for a plain end; not after `close`.
            decoder: holds what was read before.
        """
        self._loop = loop
        self._connection = connection
        self._writing = writing_descriptor(connection)
        self._on_frame = on_frame
        self._on_end = on_end
        self._decoder = decoder or Decoder()
        self._queue: deque[tuple[memoryview, tuple[int, ...]]] = deque()
        self.unsent = 0
        self._open = True
        connection.setblocking(False)
        loop.add_reader(connection, self.read)
        loop.call_soon(self._dispatch)  # frames that are complete already

    def send(
        self,
        kind: Kind,
        header: Mapping[str, Any] | None = None,
        body: bytes = b"",
        descriptors: Sequence[int] = (),
    ) -> None:
        """Send a message; the descriptors stay the caller's. Nothing happens after the end."""
        if not self._open:
            return
        data = memoryview(encode(kind, header, body, len(descriptors)))
        self._queue.append((data, tuple(os.dup(number) for number in descriptors)))
        self.unsent += len(data)
        if len(self._queue) == 1:
            self._writable()
            if self._queue:
                self._loop.add_writer(self._writing, self._writable)

    def _writable(self) -> None:
        try:
            while self._queue:
                data, descriptors = self._queue[0]
                sent = send_some(self._connection, data, descriptors)
                self.unsent -= sent
                _close_all(descriptors)
                if sent < len(data):
                    self._queue[0] = (data[sent:], ())
                else:
                    self._queue.popleft()
        except BlockingIOError:
            return
        except OSError:  # the reading side will see the end, after what is still to be read
            self._forget_unsent()
        self._loop.remove_writer(self._writing)

    def _forget_unsent(self) -> None:
        for _, descriptors in self._queue:
            _close_all(descriptors)
        self._queue.clear()
        self.unsent = 0

    def read(self) -> bool:
        """Handle what has come, without waiting. False when there is nothing more."""
        if not self._open:
            return False
        try:
            more = receive_frames(self._connection, self._decoder)
        except BlockingIOError:
            return False
        except OSError:
            more = False
        except ControlError as problem:
            self._end(str(problem))
            return False
        self._dispatch()
        if not more:
            self._end("")
        return self._open

    def _dispatch(self) -> None:
        while self._open:
            try:
                frame = self._decoder.next()
            except ControlError as problem:
                self._end(str(problem))
                return
            if frame is None:
                return
            self._on_frame(frame)

    def _end(self, reason: str) -> None:
        if self._open:
            self.close()
            self._on_end(reason)

    def close(self) -> None:
        """Drop the connection and what was not sent."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._connection)
            self._loop.remove_writer(self._writing)
            self._forget_unsent()
            self._decoder.close()
            self._connection.close()


def _close_all(descriptors: tuple[int, ...]) -> None:
    for number in descriptors:
        os.close(number)
