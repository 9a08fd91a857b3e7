"""The line between the scheduler and a rank's process: values in frames, over a socket pair.

Whoever is spoken to runs, the other waits: a rank sends a batch of calls and waits for one answer,
the scheduler answers and waits for the next batch.
"""

from __future__ import annotations

import marshal
import socket
import struct
from typing import Any, Final

from ompy.compiled import ccall, cclass, cfunc

_SIZE: Final = struct.Struct("!I")
_HEAD: Final = _SIZE.size
_PERIOD: Final = struct.Struct("@ll")  # C's `struct timeval`
ROOM: Final = 16_384  # bytes; arbitrary: seldom does one frame take two reads


# an answer that asks a rank to be two; always the same bytes: marshal has several for one value
_FORK: Final = marshal.dumps((0, "fork", None, [], {}))
FORK: Final = _SIZE.pack(len(_FORK)) + _FORK


class LineClosed(Exception):
    """The process at the other end has gone."""


@cclass
class Line:
    """One end of a line. Values are those `marshal` knows: both ends are of one interpreter."""

    _data: bytearray
    _socket: Any
    _timeout: Any
    __slots__ = tuple(__annotations__)

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._data = bytearray()
        self._timeout = None

    @property
    def descriptor(self) -> int:
        """Of this end."""
        found: int = self._socket.fileno()
        return found

    @ccall
    def send(self, value: Any) -> None:
        """Send one value.

        Raises:
            LineClosed: nobody is there any more.
        """
        self.send_data(marshal.dumps(value))

    @ccall
    def send_data(self, data: bytes) -> None:
        """Send a value that is in marshal's form already.

        Raises:
            LineClosed: nobody is there any more.
        """
        self._send_all(_SIZE.pack(len(data)) + data)

    def ask_fork(self) -> None:
        """Ask the rank at the other end to be two; `receive_end` has the answer.

        Raises:
            LineClosed: nobody is there any more.
        """
        self._send_all(FORK)

    @cfunc
    def _send_all(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            raise LineClosed from None

    @ccall
    def receive(self, timeout: float | None = None) -> Any:
        """Wait for the next value.

        Args:
            timeout: seconds of real time to wait at most.

        Raises:
            LineClosed: nobody is there any more.
            TimeoutError: nothing came.
        """
        self._wait_for(timeout)
        self._fill(_HEAD)
        size: int = _SIZE.unpack_from(self._data)[0]
        self._fill(_HEAD + size)
        value: Any = marshal.loads(memoryview(self._data)[_HEAD : _HEAD + size])  # noqa: S302 - from our own fork
        del self._data[: _HEAD + size]
        return value

    def send_end(self, end: socket.socket, process: int) -> None:
        """Send an end of another line, to this process's twin, and that one's number."""
        socket.send_fds(self._socket, [_SIZE.pack(process)], [end.fileno()])

    def receive_end(self) -> tuple[socket.socket, int]:
        """What `send_end` sends; nothing else may be under way.

        Raises:
            LineClosed: nobody is there any more.
        """
        self._wait_for(None)
        data, ends, _, _ = socket.recv_fds(self._socket, _SIZE.size, 1)
        if not ends:
            raise LineClosed
        (process,) = _SIZE.unpack(data)
        return socket.socket(fileno=ends[0]), process

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    @cfunc
    def _wait_for(self, timeout: Any) -> None:
        """Let the kernel wait so long, and not Python, which asks it twice for each value."""
        if timeout == self._timeout:
            return
        self._timeout = timeout
        seconds: Any = timeout or 0
        parts: tuple[int, int] = (int(seconds), int(seconds % 1 * 1_000_000))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _PERIOD.pack(*parts))

    @cfunc
    def _fill(self, count: int) -> None:
        while len(self._data) < count:
            try:
                data: bytes = self._socket.recv(ROOM)
            except ConnectionResetError:
                data = b""
            except BlockingIOError:
                raise TimeoutError from None
            if not data:
                raise LineClosed
            self._data += data
