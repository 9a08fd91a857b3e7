"""Programs of ranks of a real job that put and get by a conduit; they check themselves."""

from __future__ import annotations

import threading
from random import Random

from ompy.data.request import Waitable
from ompy.frameworks.conduit import HANDLERS, Conduit, ThreadMode, Transfer
from ompy.runtime.ranks.conduit_selection import select_conduit
from ompy.runtime.ranks.process import RankProcess

SIZES = (1, 127, 128, 129, 4096, 4097, 8191, 8192, 8193, 40_000, (1 << 20) + 5)
AREA = 1 << 21  # of a segment that one rank writes to, or one thread
SECOND = 1_000_000_000  # ns
THREADS = 3


class Awaited(Transfer):
    """So many transfers that are waited for together."""

    def __init__(self, process: RankProcess, count: int) -> None:
        self._engine = process.context.engine
        self._left = list(range(count))  # threads count by taking one out
        self._done = Waitable()

    def done(self, *, is_get: bool) -> None:
        if not self._left.pop():
            self._done.finish()

    def wait(self) -> None:
        assert self._engine.wait(self._done, 60 * SECOND), f"{len(self._left)} are not done"


def joined(process: RankProcess, mode: ThreadMode, size: int) -> Conduit:
    conduit = select_conduit(process, mode)
    conduit.attach([None] * HANDLERS, size)
    return conduit


def end(process: RankProcess, conduit: Conduit) -> dict[str, int]:
    process.context.wireup.fence()  # who exits ends all others
    counters = conduit.counters()
    assert conduit.exit(0) == 0
    return counters


def sizes_and_alignments(process: RankProcess) -> dict[str, int]:
    """Each rank puts into the next one's segment and gets that back, many at a time."""
    context = process.context
    rank, size = context.rank, context.size
    conduit = joined(process, ThreadMode.SEQ, size * AREA)
    there, random = rank * AREA, Random(rank)
    outside = memoryview(bytearray(random.randbytes(AREA)))
    inside = conduit.segment[there : there + AREA]  # each peer writes to an area of its own
    for shift in range(4):
        for length in SIZES:
            for memory in (outside, inside):
                local = memory[shift : shift + length]
                put_and_get(process, conduit, (rank + 1) % size, there + 3 - shift, local, random)
    return end(process, conduit)


def put_and_get(
    process: RankProcess,
    conduit: Conduit,
    node: int,
    offset: int,
    local: memoryview,
    random: Random,
) -> None:
    size = len(local)
    local[:] = random.randbytes(size)
    data = bytes(local)
    bulk = size > conduit.max_put_local or random.random() < 0.5
    told = Awaited(process, 1)
    conduit.put(node, offset, local, told, bulk=bulk)
    if not bulk:
        local[:] = bytes(size)
    told.wait()
    room = memoryview(bytearray(size + 4))
    gets = Awaited(process, 5)
    for at in range(4):  # of every local alignment, all under way together
        conduit.get(node, offset, memoryview(bytearray(size + 4))[at : at + size], gets)
    conduit.get(node, offset, room[:size], gets)
    gets.wait()
    assert room[:size] == data


def threads(process: RankProcess) -> dict[str, int]:
    """Several threads of each rank at once, each in an area of its own."""
    context = process.context
    area = 1 << 17
    conduit = joined(process, ThreadMode.PAR, THREADS * area)
    node, wrong = 1 - context.rank, []

    def work(number: int) -> None:
        try:
            random = Random(context.rank * THREADS + number)
            for _ in range(25):
                length = random.choice([random.randrange(1, 200), random.randrange(1, 30_000)])
                local = memoryview(bytearray(length + 3))[random.randrange(4) :][:length]
                offset = number * area + random.randrange(64)
                put_and_get(process, conduit, node, offset, local, random)
        except BaseException as problem:
            wrong.append(repr(problem))
            raise

    workers = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for worker in workers:
        worker.start()
    finished = Waitable()
    while any(worker.is_alive() for worker in workers):
        context.engine.wait(finished, SECOND // 1000)
    assert not wrong, wrong
    return end(process, conduit)
