"""Bytes and packets of a socket that does not block, without an exception where there are none.

Interpreted, this module is used. In a compiled module the functions of the same names in
`wire.pxd` take their place.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Final

SOL_UDP: Final = 17  # Linux
UDP_SEGMENT: Final = 103  # Linux: the size of the packets a send is cut into
UDP_GRO: Final = 104  # Linux: the size of the packets a read was merged from
PIECES: Final = 64  # of one call; arbitrary: a frame has three
_NOTE_ROOM: Final = 64  # arbitrary: more than one note takes


def receive(descriptor: int, view: memoryview) -> int:
    """Bytes stored at the beginning of `view`; 0 at the end of the stream; else minus errno."""
    try:
        return os.readv(descriptor, (view,))
    except OSError as problem:
        return -(problem.errno or 1)


def send(descriptor: int, view: memoryview) -> int:
    """Bytes of `view` that the kernel has taken; else minus errno."""
    try:
        return os.write(descriptor, view)
    except OSError as problem:
        return -(problem.errno or 1)


def send_pieces(descriptor: int, pieces: Sequence[memoryview]) -> int:
    """Bytes that the kernel has taken of pieces, of the first 64 at most; else minus errno."""
    try:
        return os.writev(descriptor, pieces[:PIECES])
    except OSError as problem:
        return -(problem.errno or 1)


def send_packets(
    sock: socket.socket,
    _descriptor: int,
    packets: Sequence[memoryview],
    address: tuple[str, int],
    _known: Mapping[tuple[str, int], bytes],
) -> int:
    """Hand over datagrams in one call: one, or a run of one size whose last may be shorter.

    Args:
        sock: the socket, which is used here.
        _descriptor: of it, which is used compiled.
        packets: no more than the kernel takes at once.
        address: who is to have them.
        _known: compiled: addresses as the kernel has them.

    Returns:
        0, or minus errno.
    """
    try:
        if len(packets) == 1:
            sock.sendto(packets[0], address)
        else:
            size = len(packets[0]).to_bytes(2, sys.byteorder)
            sock.sendmsg(packets, [(SOL_UDP, UDP_SEGMENT, size)], 0, address)
    except OSError as problem:
        return -_number(problem)
    return 0


def receive_packets(
    sock: socket.socket, _descriptor: int, view: memoryview
) -> tuple[int, int, object]:
    """Take a datagram, or several of one size from one sender that the kernel has merged.

    Args:
        sock: the socket, which is used here.
        _descriptor: of it, which is used compiled.
        view: room for them.

    Returns:
        Bytes in all, bytes of each but the last, and the sender: host and port, or compiled the 6
        bytes of both as the network has them. Or minus errno, 0 and None.
    """
    try:
        count, notes, _, sender = sock.recvmsg_into([view], _NOTE_ROOM)
    except OSError as problem:
        return -_number(problem), 0, None
    for _, kind, data in notes:
        if kind == UDP_GRO:
            return count, int.from_bytes(data, sys.byteorder), sender[:2]
    return count, count, sender[:2]


def _number(problem: OSError) -> int:
    if isinstance(problem, BlockingIOError):
        return errno.EAGAIN
    if isinstance(problem, ConnectionRefusedError):
        return errno.ECONNREFUSED
    return problem.errno or errno.EIO
