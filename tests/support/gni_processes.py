"""Two processes with emulated Aries NICs, on one host or as if on two, over loopback.

`python -m tests.support.gni_processes near|far work|kill` prints as JSON what rank 0 has found:
with `work` the messages that came back, whether memory is as it should be and the sum of atomics;
with `kill`, after rank 1 has been killed, how a put, an atomic and a message end, and the seconds.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from multiprocessing.connection import Connection
from random import Random
from typing import Any

from ompy.engine.real import RealEngine
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.gni import AtomicCommand, Ordering, PostType, ReturnCode
from ompy.frameworks.proc import Modex, Proc
from ompy.net.real import RealNetwork
from ompy.runtime.launching.singleton import SingletonWireUp
from ompy.trace.sink import Trace

from tests.support.gni_job import SIZE, GniRank, fabrics

EMPTY = memoryview(b"")
POSTS = 150
ROUNDS = 60
SHARED = 1 << 24  # bytes of the segment that both map; more than it needs


class PairWireUp(SingletonWireUp):
    """The wire-up of two processes that have a pipe, and memory and doorbells from their parent."""

    def __init__(self, peer: Connection, memory: int, bells: list[int]) -> None:
        super().__init__()
        self.peer = peer
        self._memory = memory
        self._bells = bells

    def commit(self) -> None:
        self.peer.send(self._mine)
        self._theirs: Modex = self.peer.recv()

    def lookup(self, rank: int) -> Modex:
        return self._theirs

    def fence(self) -> None:
        self.peer.send(None)
        assert self.peer.recv() is None

    def memory(self, name: str, size: int) -> int:
        return os.dup(self._memory)

    def doorbell(self, local_rank: int) -> int:
        return os.dup(self._bells[local_rank])


class Paired(GniRank):
    """A rank of such a pair; its fences poll."""

    def join(self, *sizes: int) -> None:
        self.own = self.context.wireup._mine  # type: ignore[attr-defined]
        super().join(*sizes)

    def fence(self) -> None:
        peer = self.context.wireup.peer  # type: ignore[attr-defined]
        peer.send(None)
        self.wait(peer.poll)
        assert peer.recv() is None


def rank_of(number: int, far: bool, wireup: PairWireUp) -> Paired:
    """One process's rank."""
    engine = RealEngine(2)
    hosts = (0, 1) if far else (0, 0)
    context = RankContext(
        number,
        [Proc(rank, hosts[rank], 0 if far else rank, "here") for rank in range(2)],
        engine=engine,
        network=RealNetwork(engine, 0 if far else number, wireup),
        wireup=wireup,
        trace=Trace(number, engine.now),
        job_id=b"j" * 8,
        job_key=b"k" * 32,
    )
    loopback = [one for one in context.network.interfaces() if one.loopback]
    context.find_nics = fabrics(context, loopback)
    rank = Paired(context, "aries", Ordering.RELAXED, 1000, {}, {})
    rank.join()
    return rank


def echo(rank: Paired) -> None:
    """Send every message back."""
    endpoint = rank.endpoints[0]
    for _ in range(ROUNDS):
        rank.take(rank.mailbox_queue)
        code, message = endpoint.smsg_next()
        assert code is ReturnCode.SUCCESS
        copy = memoryview(bytes(message))
        endpoint.smsg_release()
        rank.until(lambda copy=copy: endpoint.smsg_send(copy, EMPTY), ReturnCode.NOT_DONE)


def ask(rank: Paired) -> int:
    """Send messages and count the answers that are right."""
    endpoint, right = rank.endpoints[1], 0
    for number in range(ROUNDS):
        text = memoryview(b"message %d" % number)
        rank.until(lambda text=text: endpoint.smsg_send(text, EMPTY), ReturnCode.NOT_DONE)
        rank.take(rank.mailbox_queue)
        _, message = endpoint.smsg_next()
        right += bytes(message) == bytes(text)
        endpoint.smsg_release()
    return right


def puts_and_gets(rank: Paired) -> bool:
    """Random ones, all against a plain model of the peer's memory."""
    chance, model = Random(7), bytearray(SIZE - 64)
    room = memoryview(bytearray(SIZE))
    handle = rank.register(room)
    good = True
    for _ in range(POSTS):
        at, rdma = 4 * chance.randrange(len(model) // 4), chance.randrange(2)
        size = min(len(model) - at, 4 * chance.randrange(1, 600)) // 4 * 4
        part = room[:size]
        if chance.randrange(2):
            part[:] = chance.randbytes(size)
            type_ = PostType.RDMA_PUT if rdma else PostType.FMA_PUT
            good &= rank.do(1, type_, part, at, local_handle=handle) is ReturnCode.SUCCESS
            model[at : at + size] = part
        else:
            type_ = PostType.RDMA_GET if rdma else PostType.FMA_GET
            good &= rank.do(1, type_, part, at, local_handle=handle) is ReturnCode.SUCCESS
            good &= bytes(part) == model[at : at + size]
        rank.events.clear()
    return good


def add(rank: Paired, count: int) -> list[ReturnCode]:
    """Add one to the last word, so often."""
    command = {"command": AtomicCommand.ADD, "first_operand": 1}
    return [rank.do(1, PostType.AMO, b"", SIZE - 8, **command) for _ in range(count)]


def work(rank: Paired) -> list[Any]:
    right, moved = ask(rank), puts_and_gets(rank)
    adds = add(rank, 50)
    word = bytearray(8)
    rank.do(1, PostType.FMA_GET, word, SIZE - 8)
    rank.fence()
    return [right, moved, len(set(adds)), int.from_bytes(word, "little")]


def after_the_kill(rank: Paired, child: Any) -> list[Any]:
    """What becomes of posts to one that has been killed."""
    begun = time.monotonic()
    code = ReturnCode.SUCCESS
    while code is ReturnCode.SUCCESS and time.monotonic() - begun < 30:
        code = rank.do(1, PostType.FMA_PUT, b"12345678", 0)
        rank.events.clear()
    pending = rank.post(1, PostType.AMO, b"", 0, command=AtomicCommand.ADD)
    child.join()
    if not rank.context.procs[1].node:
        rank.context.procs[1].departed = "it was killed"  # what the host's agent says
    found = [code.name, rank.done(pending).name]
    found.append(rank.endpoints[1].smsg_send(memoryview(b"x"), EMPTY).name)
    return [*found, time.monotonic() - begun]


def child_main(far: bool, task: str, wireup: PairWireUp) -> None:
    rank = rank_of(1, far, wireup)
    if task == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    echo(rank)
    rank.fence()
    rank.finalize()


def main() -> None:
    far, task = sys.argv[1] == "far", sys.argv[2]
    here, there = multiprocessing.Pipe()
    memory = os.memfd_create("gni")
    os.ftruncate(memory, SHARED)
    bells = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(2)]
    sides = [PairWireUp(one, memory, bells) for one in (here, there)]
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=child_main, args=(far, task, sides[1]))
    child.start()
    rank = rank_of(0, far, sides[0])
    found = work(rank) if task == "work" else after_the_kill(rank, child)
    if task == "work":
        rank.finalize()
    child.join()
    print(json.dumps([found, child.exitcode]))


if __name__ == "__main__":
    main()
