"""The line between the scheduler and a rank's process: values in frames, over a socket pair.

Whoever is spoken to runs, the other waits: a rank sends a batch of calls and waits for one answer,
the scheduler answers and waits for the next batch.
"""

from __future__ import annotations

import marshal
import socket
import struct
from typing import Any, Final

_SIZE: Final = struct.Struct("!I")
ROOM: Final = 65_536  # bytes; arbitrary: seldom does one frame take two reads


class LineClosed(Exception):
    """The process at the other end has gone."""


class Line:
    """One end of a line. Values are those `marshal` knows: both ends are of one interpreter."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._data = bytearray()

    def send(self, value: Any) -> None:
        """Send one value.

        Raises:
            LineClosed: nobody is there any more.
        """
        self.send_data(marshal.dumps(value))

    def send_data(self, data: bytes) -> None:
        """Send a value that is in marshal's form already.

        Raises:
            LineClosed: nobody is there any more.
        """
        try:
            self._socket.sendall(_SIZE.pack(len(data)) + data)
        except (BrokenPipeError, ConnectionResetError):
            raise LineClosed from None

    def receive(self, timeout: float | None = None) -> Any:
        """Wait for the next value.

        Args:
            timeout: seconds of real time to wait at most.

        Raises:
            LineClosed: nobody is there any more.
            TimeoutError: nothing came.
        """
        self._socket.settimeout(timeout)
        self._fill(_SIZE.size)
        (size,) = _SIZE.unpack_from(self._data)
        self._fill(_SIZE.size + size)
        value = marshal.loads(memoryview(self._data)[_SIZE.size : _SIZE.size + size])  # noqa: S302 - from our own fork
        del self._data[: _SIZE.size + size]
        return value

    def send_end(self, end: socket.socket, process: int) -> None:
        """Send an end of another line, to this process's twin, and that one's number."""
        socket.send_fds(self._socket, [_SIZE.pack(process)], [end.fileno()])

    def receive_end(self) -> tuple[socket.socket, int]:
        """What `send_end` sends; nothing else may be under way.

        Raises:
            LineClosed: nobody is there any more.
        """
        self._socket.settimeout(None)
        data, ends, _, _ = socket.recv_fds(self._socket, _SIZE.size, 1)
        if not ends:
            raise LineClosed
        (process,) = _SIZE.unpack(data)
        return socket.socket(fileno=ends[0]), process

    def replace(self, end: socket.socket) -> None:
        """Be another line from now on: this process is a twin of the one that had this."""
        self._socket.close()
        self._socket = end

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def _fill(self, count: int) -> None:
        while len(self._data) < count:
            try:
                data = self._socket.recv(ROOM)
            except ConnectionResetError:
                data = b""
            if not data:
                raise LineClosed
            self._data += data
