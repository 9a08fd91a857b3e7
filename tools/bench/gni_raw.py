#!/usr/bin/env python3
"""How fast the emulated Gemini and Aries are with nothing above them, beside messages over sm.

    ompy-run -n 2 python tools/bench/gni_raw.py [--sizes 8,4096,1048576] [--generation aries]

Rank 0 puts and gets, one after the other, by FMA into memory of rank 1 that it can map (`region`)
and into any other (`private`), which the kernel copies; rank 1 only waits. `smsg` and `message` are
half a round trip of a ping-pong. Microseconds: minimum and median of the rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from ompy import MPI
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.gni import (
    CompletionQueue,
    Endpoint,
    GniNic,
    MemoryHandle,
    PostDescriptor,
    PostType,
    ReturnCode,
    SmsgAttributes,
)
from ompy.mpi.processes.life import current

ROUNDS: Final = 15  # arbitrary: a minimum of some, on a machine that others use too
ROUND_TIME: Final = 0.02  # s; arbitrary: long beside one operation
TRIES: Final = 200  # messages of a round; arbitrary, the same for both ranks
CREDIT: Final = 4  # arbitrary: more than a ping-pong needs
MESSAGE: Final = 256  # bytes; arbitrary: more than is sent
EMPTY: Final = memoryview(b"")
TAG, COOKIE = 1, 2  # arbitrary: any will do


class End:
    """One rank's NIC, bound to the other's.

    Attributes:
        endpoint: to it.
        queue, arrivals: events of posts, and of short messages.
        memory, handles: by kind, this rank's memory and what names the peer's.
    """

    def __init__(self, context: RankContext, generation: str, size: int) -> None:
        self._context = context
        nics = context.find_nics(GniNic, "gni")
        self._nic = next(nic for nic in nics if nic.generation == generation)
        self._nic.open()
        self._domain = domain = self._nic.domain(context.rank, TAG, COOKIE)
        self.queue: CompletionQueue = domain.completion_queue(64)
        self.arrivals: CompletionQueue = domain.completion_queue(64)
        domain.mailbox_queue(self.arrivals)
        self.memory = {
            "region": context.network.region(size),
            "private": memoryview(bytearray(size)),
            "mailbox": memoryview(bytearray(domain.smsg_mailbox_size(CREDIT, MESSAGE))),
        }
        mine = {kind: domain.register(memory)[1] for kind, memory in self.memory.items()}
        context.wireup.publish("gni_raw", json.dumps([mine, self._nic.address]).encode())
        context.wireup.commit()
        context.wireup.fence()
        peer = 1 - context.rank
        theirs, address = json.loads(context.wireup.lookup(peer)["gni_raw"])
        self.handles = {kind: MemoryHandle(*handle) for kind, handle in theirs.items()}
        self.endpoint: Endpoint = domain.endpoint(self.queue)
        self.endpoint.bind(address, peer)
        here = mine["mailbox"]
        assert here is not None, "nothing else is registered"
        boxes = [SmsgAttributes(one, 0, CREDIT, MESSAGE) for one in (here, self.handles["mailbox"])]
        self.endpoint.smsg_init(boxes[0], boxes[1])
        context.wireup.fence()

    def one(self, post: PostDescriptor) -> None:
        """A post from beginning to end."""
        while self.endpoint.post_fma(post) is not ReturnCode.SUCCESS:
            self._context.engine.progress()
        event = self.queue.get_event()[1]
        while event is None:
            event = self.queue.get_event()[1]
        assert event.status is ReturnCode.SUCCESS, event.status

    def send(self, text: memoryview) -> None:
        """Send a short message."""
        while self.endpoint.smsg_send(text, EMPTY) is not ReturnCode.SUCCESS:
            self._context.engine.progress()

    def take(self) -> None:
        """Wait for one, as a rank waits for anything."""
        self._context.engine.wait_until(self.arrivals.ready)
        self.arrivals.get_event()
        self.endpoint.smsg_next()
        self.endpoint.smsg_release()

    def close(self) -> None:
        """Give everything back."""
        self.endpoint.destroy()
        self._domain.destroy()
        self._nic.close()


def note(name: str, size: int, rounds: list[float]) -> None:
    least, middle = min(rounds) * 1e6, statistics.median(rounds) * 1e6
    print(f"{name:12} {size:9} {least:10.2f} {middle:10.2f}", flush=True)


def timed(act: Callable[[], None], count: int) -> list[float]:
    """Seconds of one, the mean of `count`, for each round."""
    rounds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for _ in range(count):
            act()
        rounds.append((time.perf_counter() - begun) / count)
    return rounds


def posts(end: End, size: int) -> None:
    """Puts and gets of one size, by rank 0."""
    for kind in ("region", "private"):
        for type_ in (PostType.FMA_PUT, PostType.FMA_GET):
            post = PostDescriptor(type_)
            post.local, post.remote_handle = memoryview(bytearray(size)), end.handles[kind]
            begun = time.perf_counter()
            end.one(post)
            end.one(post)
            took = (time.perf_counter() - begun) / 2
            name = f"{'put' if type_ is PostType.FMA_PUT else 'get'} {kind}"
            note(name, size, timed(partial(end.one, post), max(1, int(ROUND_TIME / took))))


def ping_pongs(end: End, rank: int) -> None:
    """Short messages and MPI's, of 8 bytes, there and back."""
    comm, text, room = MPI.COMM_WORLD, memoryview(bytearray(8)), bytearray(8)

    def smsg() -> None:
        if not rank:
            end.send(text)
        end.take()
        if rank:
            end.send(text)

    def message() -> None:
        if not rank:
            comm.Send(text, 1)
        comm.Recv(room, 1 - rank)
        if rank:
            comm.Send(text, 0)

    for name, act in (("smsg", smsg), ("message", message)):
        rounds = [one / 2 for one in timed(act, TRIES)]
        if not rank:
            note(name, len(text), rounds)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", default="8,4096,1048576")
    options.add_argument("--generation", default="aries", choices=["gemini", "aries"])
    chosen = options.parse_args()
    sizes = [int(size) for size in chosen.sizes.split(",")]
    context = current().process.context
    end = End(context, chosen.generation, max(sizes))
    if not context.rank:
        print(f"{'':12} {'bytes':>9} {'min us':>10} {'median us':>10}", flush=True)
    ping_pongs(end, context.rank)
    MPI.COMM_WORLD.Barrier()
    if not context.rank:
        for size in sizes:
            posts(end, size)
    MPI.COMM_WORLD.Barrier()
    end.close()


if __name__ == "__main__":
    main()
