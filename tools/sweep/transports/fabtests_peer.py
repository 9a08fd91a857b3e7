#!/usr/bin/env python3
"""One end of a test of libfabric's own (fabtests), spoken by nic/libfabric; the other is theirs.

    python tools/sweep fabtests_peer rdm_pingpong "tcp;ofi_rxm" 3000           as their client
    python tools/sweep fabtests_peer rdm_atomic shm 3000 --serve --op cswap    as their server

`fabtests.py` starts it together with the other end. Addresses and beginnings of steps go over a
TCP connection, as with their option `-b`: four bytes by which the client asks whether the server
is open, then 1024 bytes with the name of each endpoint, then a byte each way wherever both wait for
each other. All else goes over the fabric: messages, RMA keys (address, length and key, 64 bits
each), a message of four bytes at the end. Bytes are digits and letters in a fixed order, by which
the other end checks them; this end checks what it gets in the same way. Exit code 1: a check
failed.
"""

from __future__ import annotations

import argparse
import os
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any, Final

from ompy.engine.real import RealEngine
from ompy.frameworks.nic.fabric import AtomicCall, Caps, Completion, Datatype, Op
from ompy.net.real import RealNetwork
from ompy.runtime.launching.singleton import SingletonWireUp

ROOT: Final = Path(__file__).resolve().parents[3]

sys.path.insert(0, str(ROOT))  # for what tests open devices with

from tests.support.fabric_programs import ALL, FORMATS, best, expected  # noqa: E402
from tests.support.libfabric_devices import fabric_nic  # noqa: E402

LOOPBACK: Final = "127.0.0.1"
CONTROL: Final = 1024  # bytes; fabtests: of a control message, such as a name
BUFFERS: Final = 4  # arbitrary: neither end sends so many that nobody has waited for
PLACE: Final = struct.Struct("<QQQ")  # fabtests: address, length and key
ALPHABET: Final = (digits + ascii_lowercase + ascii_uppercase).encode()
WORD: Final = ALPHABET[0]  # fabtests: what every atomic begins with, as operand and in memory
KEY: Final = 0xF00D  # arbitrary
PATIENCE: Final = 60.0  # s; arbitrary: for any one step, on a busy machine
NEEDED: Final = {
    "rdm_pingpong": Caps.MSG,
    "rma_pingpong": Caps.MSG | Caps.RMA,
    "rdm_atomic": Caps.MSG | Caps.ATOMIC,
}
OPS: Final = {
    "min": (AtomicCall.ATOMIC, Op.MIN),
    "max": (AtomicCall.ATOMIC, Op.MAX),
    "sum": (AtomicCall.ATOMIC, Op.SUM),
    "bxor": (AtomicCall.ATOMIC, Op.BXOR),
    "write": (AtomicCall.ATOMIC, Op.ATOMIC_WRITE),
    "read": (AtomicCall.FETCH, Op.ATOMIC_READ),
    "cswap": (AtomicCall.COMPARE, Op.CSWAP),
}


def pattern(size: int) -> bytes:
    """The bytes both ends agree on."""
    return (ALPHABET * (size // len(ALPHABET) + 1))[:size]


class End:
    """An endpoint with its queue, receives that are always posted, and one registered memory.

    Attributes:
        received: messages, in the order they came.
        memory: registered, for the other end.
    """

    def __init__(self, provider: str, library: str, caps: Caps, size: int) -> None:
        settings = {"library": library} if library else {}
        engine = RealEngine(1)
        self.nic = fabric_nic(RealNetwork(engine, 0, SingletonWireUp()), **settings)
        self.nic.open()
        flags = Caps.DELIVERY_COMPLETE if Caps.RMA in caps else Caps(0)
        self.info = best(self.nic, provider, caps=caps, op_flags=flags)
        domain = self.nic.domain(self.info)
        self.vector = domain.address_vector()
        self.queue = domain.completion_queue()
        self.endpoint = domain.endpoint(self.vector, self.queue)
        self.endpoint.enable()
        self.memory = memoryview(bytearray(max(size, CONTROL)))
        self.region = domain.register(self.memory, ALL, KEY)
        self.received: deque[bytes] = deque()
        self.to = 0
        self._done: list[Completion] = []
        for _ in range(BUFFERS):
            self._post_receive(memoryview(bytearray(max(size, CONTROL))))

    def _post_receive(self, room: memoryview) -> None:
        self.post(lambda: self.endpoint.receive(room, None, room))

    def progress(self) -> None:
        """Read the queue."""
        for done in self.queue.read(16):
            assert not done.error, done.detail
            if isinstance(done.context, memoryview):
                self.received.append(bytes(done.context[: done.size]))
                self._post_receive(done.context)
            else:
                self._done.append(done)

    def until(self, ready: Callable[[], object], what: str) -> None:
        """Read the queue until something is so."""
        limit = time.monotonic() + PATIENCE
        while not ready():
            assert time.monotonic() < limit, f"{what} has not come"
            self.progress()
            os.sched_yield()

    def post(self, call: Callable[[], bool]) -> None:
        """Post until it is taken."""
        self.until(call, "room in the device")

    def finish(self, call: Callable[[str], bool]) -> None:
        """Post one piece of work, and wait for its end."""
        self.post(partial(call, "work"))
        self.until(lambda: self._done, "its completion")
        assert [done.context for done in self._done] == ["work"]
        self._done.clear()

    def send(self, data: bytes) -> None:
        """One message; small ones have no completion."""
        view = memoryview(bytearray(data))
        if len(data) <= self.info.inject_size:
            self.post(lambda: self.endpoint.inject(view, self.to))
        else:
            self.finish(lambda context: self.endpoint.send(view, None, self.to, context))

    def next(self) -> bytes:
        """The next message that comes."""
        self.until(lambda: self.received, "a message")
        return self.received.popleft()


class Wire:
    """The TCP connection beside the fabric. Whoever waits reads the queue meanwhile."""

    def __init__(self, port: int, *, serve: bool) -> None:
        self.serve = serve
        self.end: End | None = None
        self._stream = _accepted(port) if serve else _connected(port)
        self._stream.setblocking(False)

    def send(self, data: bytes) -> None:
        """All of it; so little always fits."""
        self._stream.sendall(data)

    def receive(self, size: int) -> bytes:
        """So many bytes."""
        found = b""
        limit = time.monotonic() + PATIENCE
        while len(found) < size:
            assert time.monotonic() < limit, "the other end says nothing"
            if self.end is not None:
                self.end.progress()
            try:
                more = self._stream.recv(size - len(found))
            except BlockingIOError:
                os.sched_yield()
                continue
            assert more, "the other end has gone"
            found += more
        return found

    def meet(self, data: bytes) -> bytes:
        """Both say something of one length: the client first, then the server."""
        if self.serve:
            found = self.receive(len(data))
            self.send(data)
            return found
        self.send(data)
        return self.receive(len(data))

    def hang_up(self) -> None:
        """Read the queue until the other end is through: it may wait for us to take something."""
        self._stream.shutdown(socket.SHUT_WR)
        with suppress(AssertionError):
            self.receive(1)

    def swap(self, data: bytes) -> bytes:
        """Both say something of one length at once."""
        self.send(data)
        return self.receive(len(data))


def _accepted(port: int) -> socket.socket:
    with socket.create_server((LOOPBACK, port)) as listener:
        listener.settimeout(PATIENCE)
        return listener.accept()[0]


def _connected(port: int) -> socket.socket:
    limit = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection((LOOPBACK, port))
        except ConnectionRefusedError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.05)


def opened(wire: Wire, make: Callable[[], End]) -> End:
    """The endpoint, with the other end's name in its vector."""
    if not wire.serve:
        wire.meet(bytes(4))  # the server is open
    end = make()
    if wire.serve:
        wire.meet(bytes(4))
    theirs = wire.swap(end.endpoint.name().ljust(CONTROL, b"\0"))
    end.to = end.vector.insert(theirs)
    wire.end = end
    return end


def keys(end: End, wire: Wire) -> tuple[int, int]:
    """Address and key of the other end's memory."""
    end.send(PLACE.pack(end.region.base, len(end.memory), end.region.key))
    address, _, key = PLACE.unpack(end.next()[: PLACE.size])
    wire.meet(b"a")
    return address, key


def rdm_pingpong(end: End, wire: Wire, options: argparse.Namespace) -> None:
    """Messages to and fro."""
    data = pattern(options.size)
    wire.meet(b"a")
    for _ in range(options.count):
        if not wire.serve:
            end.send(data)
        assert end.next() == data
        if wire.serve:
            end.send(data)


def rma_pingpong(end: End, wire: Wire, options: argparse.Namespace) -> None:
    """Writes to and fro; the last byte is the round's number, for which the other end looks."""
    address, key = keys(end, wire)
    last = options.size - 1
    end.memory[last] = 0xFF
    wire.meet(b"a")

    def write(number: int) -> None:
        view = memoryview(bytearray(pattern(last) + bytes([number])))
        end.finish(lambda context: end.endpoint.write(view, None, end.to, address, key, context))

    for number in range(options.count):
        if not wire.serve:
            write(number)
        end.until(lambda: end.memory[last] == number, "a write")  # noqa: B023
        assert bytes(end.memory[:last]) == pattern(last)
        if wire.serve:
            write(number)


def rdm_atomic(end: End, wire: Wire, options: argparse.Namespace) -> None:
    """Both change a word of each other's, and look at their own and at what they fetched."""
    address, key = keys(end, wire)
    call, op = OPS[options.op]
    datatype = Datatype[options.type.upper()]
    form = struct.Struct(FORMATS[datatype])
    place: tuple[Any, ...] = (end.to, address, key, datatype, op)
    operand = memoryview(bytearray(form.pack(WORD)))
    compare = memoryview(bytearray(form.pack(WORD)))
    new = WORD if op is Op.CSWAP else expected(op, WORD, WORD, form.size, datatype % 2 == 0)
    for _ in range(options.count):
        form.pack_into(end.memory, 0, WORD)
        result = memoryview(bytearray(form.size))
        wire.meet(b"a")
        words = {
            AtomicCall.ATOMIC: (end.endpoint.atomic, (operand,)),
            AtomicCall.FETCH: (end.endpoint.fetch_atomic, (operand, result, None)),
            AtomicCall.COMPARE: (end.endpoint.compare_atomic, (operand, compare, result, None)),
        }
        function: Any = words[call][0]
        end.finish(partial(function, *words[call][1], *place))
        wire.meet(b"a")
        assert form.unpack_from(end.memory)[0] == new
        assert call is AtomicCall.ATOMIC or form.unpack(result)[0] == WORD
    wire.meet(b"a")
    wire.meet(b"a")


PROGRAMS: Final = {
    "rdm_pingpong": rdm_pingpong,
    "rma_pingpong": rma_pingpong,
    "rdm_atomic": rdm_atomic,
}


def main() -> None:
    """Run one of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("provider")
    parser.add_argument("port", type=int)
    parser.add_argument("--serve", action="store_true", help="be the server")
    parser.add_argument("--size", type=int, default=CONTROL, help="bytes of a message or write")
    parser.add_argument("--count", type=int, default=10, help="rounds")
    parser.add_argument("--op", choices=OPS, default="sum")
    parser.add_argument("--type", choices=["int32", "uint32", "int64", "uint64"], default="uint64")
    parser.add_argument("--library", default="", help="libfabric to use instead of the system's")
    options = parser.parse_args()
    caps = NEEDED[options.program]
    wire = Wire(options.port, serve=options.serve)
    end = opened(wire, lambda: End(options.provider, options.library, caps, options.size))
    PROGRAMS[options.program](end, wire, options)
    end.send(pattern(4))
    end.next()
    wire.hang_up()
    end.nic.close()


if __name__ == "__main__":
    main()
