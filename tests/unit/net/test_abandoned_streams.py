"""A connection that was given up: the kernel forgets what it has not brought there."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from ompy.net.base import LinkError
from ompy.net.sockets import connect_tcp, listen_tcp


def kept(port: int) -> list[str]:
    """States of the kernel's connections to a port of this host."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return [words[3] for words in map(str.split, lines) if words[2].endswith(f":{port:04X}")]


@pytest.mark.parametrize("abandoned", [True, False])
def test_what_the_peer_does_not_read(abandoned: bool) -> None:
    """It is not sent on by the kernel, and the peer sees a reset behind what it has."""
    listener = listen_tcp("127.0.0.1", [0], None)
    ours = connect_tcp(listener.address, "")
    theirs = None
    while theirs is None:
        theirs = listener.accept()
    room = memoryview(bytes(1 << 20))
    while ours.send([room]):
        pass  # until both kernels are full
    if abandoned:
        ours.abandon()
    ours.close()
    assert bool(kept(listener.address.port)) is not abandoned
    place = memoryview(bytearray(1 << 20))
    reset = False
    try:
        while theirs.receive_into(place):
            pass  # until the end of all that was sent
    except LinkError:
        reset = True
    assert reset is abandoned
    theirs.close()
    listener.close()


def test_a_mute_connection_leaves_by_the_loopback_device() -> None:
    """Where there is no neighbour to look for."""
    listener = listen_tcp("127.0.0.1", [0], None)
    ours = connect_tcp(listener.address, "")
    ours.block_output()
    bound = ours.socket.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16)
    assert bound.rstrip(b"\0") == b"lo"
    ours.close()
    ours.block_output()  # harmless
    listener.close()
