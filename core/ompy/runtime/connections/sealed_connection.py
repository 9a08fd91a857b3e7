"""A control connection between hosts under a seal, where nothing else keeps strangers out of it.

Looks like a socket to those who frame control messages, as `PipePair` does. The records are those
of connections between ranks (`core/ompy/net/seals/records.py`), always with a MAC and never
encrypted: no secret goes through it once both ends have proven themselves.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ompy.net.seals.handshake import SealLevel
from ompy.net.seals.records import Opener, Sealer, SealError, Writer
from ompy.runtime.connections.control import ControlError

if TYPE_CHECKING:
    from ompy.runtime.connections.pipes import PipePair


class SealedConnection:
    """Passes on what the other end has sealed, and nothing else. Passes no descriptors."""

    __slots__ = ("_inner", "_opener", "_writer")

    def __init__(self, inner: socket.socket | PipePair, keys: tuple[bytes, bytes]) -> None:
        """Take over a connection from its first sealed byte on.

        Args:
            inner: the connection.
            keys: of what is sent, and of what comes.
        """
        self._inner = inner
        self._writer = Writer(Sealer(keys[0], SealLevel.MAC), self._transmit)
        self._opener = Opener(keys[1], SealLevel.MAC)

    @property
    def writing(self) -> int:
        """The descriptor to write to; `fileno` is the one to read from."""
        return (
            self._inner.fileno() if isinstance(self._inner, socket.socket) else self._inner.writing
        )

    def fileno(self) -> int:
        """The descriptor to read from; -1 after `close`."""
        return self._inner.fileno()

    def setblocking(self, flag: bool) -> None:
        """Whether reading and writing wait."""
        self._inner.setblocking(flag)

    def recvmsg(
        self, _size: int, _space: int = 0, flags: int = 0
    ) -> tuple[bytes, list[tuple[int, int, bytes]], int, Any]:
        """Read once; nothing at the end. There is no ancillary data.

        Raises:
            BlockingIOError: no record is whole by now.
            ControlError: what came was not sealed by the other end.
        """
        data = self._inner.recvmsg(len(self._opener.room()), 0, flags)[0]
        if not data:
            return b"", [], 0, None
        found = self.feed(data)
        if not found:
            raise BlockingIOError
        return found, [], 0, None

    def feed(self, data: bytes) -> bytes:
        """Take in what was read from the connection below. What whole records say.

        Args:
            data: no more than a control connection is read at a time.

        Raises:
            ControlError: it was not sealed by the other end.
        """
        room = self._opener.room()
        room[: len(data)] = data
        self._opener.received(len(data))
        found = []
        try:
            while self._opener.next():
                found.append(bytes(self._opener.plain))
        except SealError as problem:
            raise ControlError(str(problem)) from None
        return b"".join(found)

    def send(self, data: bytes | memoryview, _flags: int = 0) -> int:
        """Write the beginning of `data`. How much went.

        Raises:
            BlockingIOError: none of its records went whole; the same is to be offered again.
        """
        taken = self._writer.write_pieces([memoryview(data)])
        if not taken and len(data):
            raise BlockingIOError
        return taken

    def _transmit(self, pieces: Sequence[memoryview]) -> int:
        try:
            return self._inner.send(b"".join(pieces), socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return 0

    def close(self) -> None:
        """Close the connection below."""
        self._inner.close()
