"""Programs of ranks that have both MPI and a conduit; they check themselves."""

from __future__ import annotations

import os
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
from ompy.runtime.conduit_selection import select_conduit
from ompy.runtime.process import RankProcess

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


def joined(process: RankProcess, handlers: dict[int, Handler]) -> Conduit:
    conduit = select_conduit(process, ThreadMode.SEQ)
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


def one_ends_all(process: RankProcess) -> int:
    """Rank 1 ends the job in a flood of requests between all."""
    context = process.context
    conduit = joined(process, {REQUEST: lambda *_: None})
    number = 0
    while True:
        number += 1
        for node in range(context.size):
            if node != context.rank:
                conduit.request(Category.SHORT, node, REQUEST, [number], EMPTY, 0)
        if context.rank == 1 and number == 200:
            raise SystemExit(conduit.exit(int(os.environ.get("OMPY_TEST_CODE", "33"))))
