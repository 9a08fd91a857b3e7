"""Programs of ranks that have both MPI and a conduit; they check themselves."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ompy.frameworks.conduit import (
    HANDLERS,
    Category,
    Conduit,
    Handler,
    ThreadMode,
    Token,
    Transfer,
)
from ompy.frameworks.pml import STANDARD
from ompy.runtime.ranks.conduit_selection import select_conduit
from ompy.runtime.ranks.process import RankProcess

from tests.sim.p2p.programs import buffer, pattern, send, world

EMPTY = memoryview(b"")
REQUEST, ANSWER = 128, 129
SEGMENT = 1 << 16
SECOND = 1_000_000_000  # ns


class Counted(Transfer):
    """A transfer that is waited for."""

    def __init__(self) -> None:
        self.complete = False

    def done(self, *, is_get: bool) -> None:
        self.complete = True


def joined(
    process: RankProcess, handlers: dict[int, Handler], mode: ThreadMode = ThreadMode.SEQ
) -> Conduit:
    conduit = select_conduit(process, mode)
    mine, least = conduit.max_segment()
    assert least <= mine
    table: list[Handler | None] = [handlers.get(index) for index in range(HANDLERS)]
    conduit.attach(table, min(SEGMENT, least))
    return conduit


def wait(process: RankProcess, ready: Any) -> None:
    assert process.context.engine.wait_until(ready, 60 * SECOND), "it does not happen"


def beside_mpi(process: RankProcess) -> dict[str, int]:
    """Requests are answered from within a blocking receive of MPI; then transfers, then the end."""
    context = process.context
    rank, size = context.rank, context.size
    answers: list[bytes] = []

    def asked(token: Token, payload: memoryview, arguments: Sequence[int]) -> None:
        back = memoryview(bytes(payload)[::-1])
        conduit.reply(Category.MEDIUM, token, ANSWER, arguments, back, 0)

    def answered(token: Token, payload: memoryview, arguments: Sequence[int]) -> None:
        answers.append(bytes(payload))

    conduit = joined(process, {REQUEST: asked, ANSWER: answered})
    comm, pml = world(process), process.pml
    if rank == 0:
        for number in range(40):
            for node in range(1, size):
                data = memoryview(pattern(300, number))
                conduit.request(Category.MEDIUM, node, REQUEST, [number], data, 0)
        wait(process, lambda: len(answers) == 40 * (size - 1))
        for node in range(1, size):
            pml.send(comm, send(pattern(70_000, node)), node, 5, STANDARD)
    else:
        memory, room = buffer(70_000)
        pml.recv(comm, room, 0, 5)
        assert bytes(memory) == pattern(70_000, rank)
    _exchange(process, conduit)
    counters = conduit.counters()
    context.wireup.fence()  # who exits ends all others
    assert conduit.exit(0) == 0
    return counters


def _exchange(process: RankProcess, conduit: Conduit) -> None:
    """Each puts into the next rank's segment, and gets it back."""
    context, comm, pml = process.context, world(process), process.pml
    after = (context.rank + 1) % context.size
    sizes = (8, 129, 5000, 20_000)
    for turn, size in enumerate(sizes):
        begin = 64 + sum(sizes[:turn])
        data = pattern(size, context.rank + turn)
        put = Counted()
        conduit.put(after, begin, memoryview(data), put, bulk=True)
        wait(process, lambda done=put: done.complete)
        got, room = Counted(), bytearray(size)
        conduit.get(after, begin, memoryview(room), got)
        wait(process, lambda done=got: done.complete)
        assert bytes(room) == data
        receive = pml.irecv(comm, buffer(0)[1], (context.rank - 1) % context.size, 100 + turn)
        pml.send(comm, send(b""), after, 100 + turn, STANDARD)
        pml.wait(comm, receive)
        source = (context.rank - 1) % context.size
        assert bytes(conduit.segment[begin : begin + size]) == pattern(size, source + turn)


def threads(process: RankProcess) -> list[int]:
    """Threads of each rank send to the next one at the same time (PAR)."""
    context, count, each = process.context, 3, 60
    after = (context.rank + 1) % context.size
    heard = [0] * count
    asked_here = 0
    counting = threading.Lock()

    def asked(token: Token, payload: memoryview, arguments: Sequence[int]) -> None:
        nonlocal asked_here
        assert bytes(payload) == pattern(100, arguments[1])
        with counting:
            asked_here += 1
        if arguments[1] % 2:
            conduit.reply(Category.SHORT, token, ANSWER, arguments, EMPTY, 0)

    def answered(token: Token, payload: memoryview, arguments: Sequence[int]) -> None:
        with counting:
            heard[arguments[0]] += 1

    def work(thread: int) -> None:
        for number in range(each):
            data = memoryview(pattern(100, number))
            conduit.request(Category.MEDIUM, after, REQUEST, [thread, number], data, 0)
            if not number % 10:
                put = Counted()
                conduit.put(after, 4096 * thread, data, put, bulk=True)
                while not put.complete:
                    context.engine.progress()
        while heard[thread] < each // 2:
            context.engine.progress()

    conduit = joined(process, {REQUEST: asked, ANSWER: answered}, ThreadMode.PAR)
    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(count)]
    for worker in workers:
        worker.start()
    wait(process, lambda: asked_here == count * each and heard == [each // 2] * count)
    for worker in workers:
        worker.join()
    context.wireup.fence()
    assert conduit.exit(0) == 0
    return heard
