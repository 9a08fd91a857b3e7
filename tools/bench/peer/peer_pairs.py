#!/usr/bin/env python3
"""The workloads of `peer_workloads.py` on what is no MPI: multiprocessing.Pipe and pyzmq.

    python tools/bench/peer/peer_pairs.py pipe|zmq-ipc|zmq-tcp SECONDS WORKLOAD...

`send:SIZE` sends bytes, `object:NAME` whatever the peer makes of an object (its own pickling;
pyzmq: `send_pyobj`). The line of JSON is like the other program's: one-way seconds, a list of
parts each.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from multiprocessing import Pipe
from time import perf_counter
from typing import Any, Final

PARTS: Final = 20  # arbitrary: as peer_workloads.py
WARM_UP: Final = 5  # arbitrary: as peer_workloads.py
UNITS: Final = {"k": 1 << 10, "m": 1 << 20}
OBJECTS: Final[dict[str, Callable[[], Any]]] = {
    "int": lambda: 12345,
    "dict1k": lambda: {f"key {number}": number / 7 for number in range(45)},
}

Ends = tuple[Callable[[Any], Any], Callable[[], Any]]  # send and receive


def bytes_of(word: str) -> int:
    """8, 1k or 4m."""
    return int(word[:-1]) * UNITS[word[-1]] if word[-1] in UNITS else int(word)


def pipe_ends(objects: bool) -> tuple[Callable[[], Ends], Callable[[], Ends]]:
    """The ends of a pipe, for this process and its child."""
    here, there = Pipe()
    if objects:
        return lambda: (here.send, here.recv), lambda: (there.send, there.recv)
    return (
        lambda: (here.send_bytes, here.recv_bytes),
        lambda: (there.send_bytes, there.recv_bytes),
    )


def zmq_ends(objects: bool, address: str) -> tuple[Callable[[], Ends], Callable[[], Ends]]:
    """A pair of sockets; each process makes its own."""

    def make(binds: bool) -> Ends:
        import zmq

        socket = zmq.Context().socket(zmq.PAIR)
        if binds:
            socket.bind(address)
        else:
            socket.connect(address)
        if objects:
            return socket.send_pyobj, socket.recv_pyobj
        return socket.send, socket.recv

    return lambda: make(True), lambda: make(False)


def answer(ends: Ends) -> None:
    """Send back what comes, until None or nothing comes."""
    send, receive = ends
    while True:
        got = receive()
        if got is None or got == b"":
            os._exit(0)
        send(got)


def one_way(ends: Ends, message: Any, seconds: float) -> list[float]:
    """Figures of one workload."""
    send, receive = ends

    def timed(count: int) -> float:
        got = None
        begin = perf_counter()
        for _ in range(count):
            send(message)
            got = receive()
        passed = perf_counter() - begin
        if got != message:
            raise SystemExit("wrong data")
        return passed

    once = min(timed(1) for _ in range(WARM_UP))
    count = max(1, min(2000, int(seconds / PARTS / max(once, 1e-7))))
    return [timed(count) / count / 2 for _ in range(PARTS)]


def measure(way: str, word: str, seconds: float) -> list[float]:
    """Run one workload with a child of its own."""
    kind, _, what = word.partition(":")
    objects = kind == "object"
    message = OBJECTS[what]() if objects else bytes(range(256)) * (bytes_of(what) // 256 + 1)
    if not objects:
        message = message[: bytes_of(what)]
    with tempfile.TemporaryDirectory() as folder:
        if way == "pipe":
            own, others = pipe_ends(objects)
        elif way == "zmq-ipc":
            own, others = zmq_ends(objects, f"ipc://{folder}/pair")
        else:
            own, others = zmq_ends(objects, f"tcp://127.0.0.1:{free_port()}")
        child = os.fork()
        if not child:
            answer(others())
        ends = own()
        found = one_way(ends, message, seconds)
        ends[0](None if objects else b"")
        os.waitpid(child, 0)
    return found


def free_port() -> int:
    """A port nobody listens at."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> None:
    """Measure each workload on the command line."""
    way, seconds, *words = sys.argv[1:]
    found = {word: measure(way, word, float(seconds)) for word in words}
    print(json.dumps({"library": way, "seconds": found}))


if __name__ == "__main__":
    main()
