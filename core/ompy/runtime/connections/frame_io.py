"""Control frames and their descriptors over a Unix socket, or a pair of pipes."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ompy.runtime.connections.control import DESCRIPTOR_LIMIT, READ_SIZE

if TYPE_CHECKING:
    from ompy.runtime.connections.control import Decoder
    from ompy.runtime.connections.pipes import Connection

_INT: Final = struct.Struct("@i")


def receive_frames(connection: Connection, decoder: Decoder, flags: int = 0) -> bool:
    """Read once from `connection` into `decoder`. False at the end of the connection.

    Args:
        connection: a Unix stream socket, or a pair of pipes.
        decoder: gets the bytes and descriptors.
        flags: of `recvmsg`, as `MSG_DONTWAIT`.

    Raises:
        BlockingIOError: nothing there, and waiting was not wanted.
    """
    space = socket.CMSG_SPACE(_INT.size * DESCRIPTOR_LIMIT)
    data, ancillary, _, _ = connection.recvmsg(READ_SIZE, space, flags | socket.MSG_CMSG_CLOEXEC)
    descriptors = []
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            whole = content[: len(content) - len(content) % _INT.size]
            descriptors += [number for (number,) in _INT.iter_unpack(whole)]
    decoder.feed(data, descriptors)
    return bool(data)


def send_some(
    connection: Connection, data: bytes | memoryview, descriptors: Sequence[int] = ()
) -> int:
    """Send the beginning of `data`, and `descriptors` with its first byte. How much went.

    Raises:
        BlockingIOError: nothing went; the socket does not wait.
    """
    if not descriptors:
        return connection.send(data, socket.MSG_NOSIGNAL)
    assert isinstance(connection, socket.socket), "pipes pass no descriptors"
    numbers = b"".join(map(_INT.pack, descriptors))
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)
    return connection.sendmsg([data], [rights], socket.MSG_NOSIGNAL)


def send_all(connection: Connection, data: bytes, descriptors: Sequence[int] = ()) -> None:
    """Send all of `data` over a connection that waits."""
    sent = send_some(connection, data, descriptors)
    rest = memoryview(data)[sent:]
    while rest:
        rest = rest[connection.send(rest, socket.MSG_NOSIGNAL) :]
