"""Streams of real sockets: what they say when nothing can be sent or received."""

from __future__ import annotations

import socket

import pytest
from ompy.net.base import WOULD_BLOCK, LinkError
from ompy.net.sockets import SocketStream, connect_tcp, listen_tcp


def pair() -> tuple[SocketStream, SocketStream]:
    one, other = socket.socketpair()
    return SocketStream(one), SocketStream(other)


def test_bytes_come_as_they_were_sent_in_one_piece_or_several() -> None:
    one, other = pair()
    room = memoryview(bytearray(10))
    assert one.send([memoryview(b"abc")]) == 3
    assert one.send([memoryview(b"de"), memoryview(b"fg")]) == 4
    assert other.receive_into(room[1:]) == 7
    assert bytes(room) == b"\0abcdefg\0\0"
    one.close()
    other.close()


def test_an_empty_and_a_full_stream_are_no_errors() -> None:
    one, other = pair()
    room = memoryview(bytearray(1 << 20))
    assert other.receive_into(room) == WOULD_BLOCK
    sent = 0
    while taken := one.send([room]):
        sent += taken
    assert sent > 0
    received = 0
    while (count := other.receive_into(room)) != WOULD_BLOCK:
        received += count
    assert received == sent
    one.close()
    other.close()


def test_an_end_is_told_and_what_is_sent_to_it_is_an_error() -> None:
    one, other = pair()
    one.close()
    room = memoryview(bytearray(4))
    assert other.receive_into(room) == 0
    with pytest.raises(LinkError, match="Broken pipe"):
        other.send([room])
    other.close()


def test_a_closed_stream_has_no_other_socket_s_number() -> None:
    one, other = pair()
    one.close()
    third, fourth = pair()  # they have the number that `one` had
    with pytest.raises(LinkError, match="Bad file descriptor"):
        one.send([memoryview(b"for nobody")])
    with pytest.raises(LinkError, match="Bad file descriptor"):
        one.receive_into(memoryview(bytearray(4)))
    room = memoryview(bytearray(4))
    assert third.receive_into(room) == fourth.receive_into(room) == WOULD_BLOCK
    for stream in (other, third, fourth):
        stream.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="Linux has it")
def test_nothing_is_paced_within_a_host() -> None:
    """Where the system's default is bbr, large messages took half as long again."""
    listener = listen_tcp("127.0.0.1", [0], None)
    one = connect_tcp(listener.address, "127.0.0.1")
    other = None
    while other is None:
        other = listener.accept()
    for stream in (one, other):
        assert isinstance(stream, SocketStream)
        used = stream.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        assert used.rstrip(b"\0") == b"reno"
        stream.close()
    listener.close()
