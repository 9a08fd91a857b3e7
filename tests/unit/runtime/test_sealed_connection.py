"""A control connection with an injector on the path: sealed, nothing of it is acted upon."""

import os
import socket

import pytest
from ompy.engine.reactor import Reactor
from ompy.net.seals.records import session_keys
from ompy.runtime.connections.channel import Channel
from ompy.runtime.connections.control import Kind, encode
from ompy.runtime.connections.pipes import PipePair
from ompy.runtime.connections.sealed_connection import SealedConnection

FORTH, BACK = session_keys(b"k" * 32, b"a test")


class Path:
    """Two ends of a control connection, and somebody between them who forwards what goes forth."""

    def __init__(self, *, sealed, tamper=lambda data: data, pipes=False):
        ours, self._in = socket.socketpair()
        self._out, theirs = socket.socketpair()
        self._in.setblocking(False)
        self._tamper = tamper
        self.loop = Reactor()
        self.frames, self.ends = [], []
        ends = [ours, theirs]
        if pipes:
            ends = [PipePair(os.dup(end.fileno()), end.detach()) for end in ends]
        if sealed:
            ends = [
                SealedConnection(ends[0], (FORTH, BACK)),
                SealedConnection(ends[1], (BACK, FORTH)),
            ]
        self.sender = Channel(self.loop, ends[0], lambda frame: None, lambda why: None)
        self.receiver = Channel(self.loop, ends[1], self.frames.append, self.ends.append)

    def run(self, done, rounds=2000):
        """Until `done` is true of the frames that came, or the connection has ended."""

        def step(left):
            try:
                data = self._tamper(self._in.recv(1 << 16))
                self._out.sendall(data)
            except BlockingIOError:
                pass
            if done(self.frames) or self.ends or not left:
                self.loop.stop()
            else:
                self.loop.call_later(0.001, step, left - 1)

        self.loop.call_soon(step, rounds)
        self.loop.run_forever()
        self.sender.close()
        self.receiver.close()
        self._in.close()
        self._out.close()


def counted(count):
    return lambda frames: len(frames) >= count


@pytest.mark.parametrize("pipes", [False, True])
def test_messages_of_all_sizes_come_as_they_were_sent(pipes):
    path = Path(sealed=True, pipes=pipes)
    bodies = [bytes([n]) * size for n, size in enumerate((0, 1, 100, 70_000, 3_000_000, 5))]
    for number, body in enumerate(bodies):
        path.sender.send(Kind.MODEX, {"n": number}, body)
    path.run(counted(len(bodies)))
    assert not path.ends
    assert [frame.body for frame in path.frames] == bodies


FORGED = encode(Kind.END, {"code": 0})


def test_without_a_seal_a_forged_message_is_obeyed():
    """What it is there for."""
    path = Path(sealed=False, tamper=lambda data: data + FORGED)
    path.sender.send(Kind.ALIVE)
    path.run(counted(2))
    assert [frame.kind for frame in path.frames] == [Kind.ALIVE, Kind.END]


@pytest.mark.parametrize(
    "tamper",
    [
        lambda data: data + FORGED,
        lambda data: FORGED + data,
        lambda data: data + data,
        lambda data: bytes([data[0] ^ 1]) + data[1:],
        lambda data: data[:20] + bytes([data[20] ^ 0x80]) + data[21:],
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: b"\xff" * 4 + data[4:],
    ],
)
def test_sealed_nothing_forged_is_heard_and_the_reason_is_told(tamper):
    path = Path(sealed=True, tamper=tamper)
    path.sender.send(Kind.ALIVE)
    path.run(counted(2))
    assert [frame.kind for frame in path.frames] in ([], [Kind.ALIVE])
    (why,) = path.ends
    assert "not what the other end has sealed" in why


def test_the_end_of_the_stream_is_the_end():
    ours, theirs = socket.socketpair()
    loop, ends = Reactor(), []
    sealed = SealedConnection(theirs, (BACK, FORTH))
    Channel(loop, sealed, lambda frame: None, lambda why: (ends.append(why), loop.stop()))
    ours.close()
    loop.run_forever()
    assert ends == [""]
