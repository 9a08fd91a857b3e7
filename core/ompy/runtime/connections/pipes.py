"""A control connection over two descriptors: standard input and output of an agent."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from ompy.frameworks.plm import AgentLink
    from ompy.runtime.connections.sealed_connection import (
        SealedConnection,  # with hashes, which few agents need
    )


class PipePair:
    """Looks like a socket to those who frame control messages; passes no descriptors.

    Attributes:
        writing: the descriptor to write to; `fileno` is the one to read from.
    """

    __slots__ = ("_reading", "writing")

    def __init__(self, reading: int, writing: int) -> None:
        """Take over two descriptors, which may be ends of one socket."""
        self._reading = reading
        self.writing = writing

    def fileno(self) -> int:
        """The descriptor to read from; -1 after `close`."""
        return self._reading

    def setblocking(self, flag: bool) -> None:
        """Whether reading and writing wait."""
        os.set_blocking(self._reading, flag)
        os.set_blocking(self.writing, flag)

    def recvmsg(
        self, size: int, _space: int = 0, _flags: int = 0
    ) -> tuple[bytes, list[tuple[int, int, bytes]], int, Any]:
        """Read once; nothing at the end. There is no ancillary data.

        Raises:
            BlockingIOError: nothing is there, and reading does not wait.
        """
        return os.read(self._reading, size), [], 0, None

    def send(self, data: bytes | memoryview, _flags: int = 0) -> int:
        """Write the beginning of `data`. How much went.

        Raises:
            BlockingIOError: nothing went, and writing does not wait.
        """
        return os.write(self.writing, data)

    def close(self) -> None:
        """Close both descriptors."""
        if self._reading >= 0:
            os.close(self._reading)
            os.close(self.writing)
            self._reading = self.writing = -1


Connection = Union[socket.socket, PipePair, "SealedConnection"]


def connection_of(link: AgentLink) -> Connection:
    """What an agent is talked to over."""
    found: Connection = link.channel if link.sealed is None else link.sealed
    return found


def writing_descriptor(connection: Connection) -> int:
    """The descriptor that is writable when the connection is."""
    return connection.fileno() if isinstance(connection, socket.socket) else connection.writing
