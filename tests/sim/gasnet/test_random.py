"""Random programs of puts, gets, fills and messages against a model of plain memory."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from ompy.gasnet import INVALID_HANDLE, PAGE_SIZE

from tests.support.effort import THOROUGH
from tests.support.gasnet_worlds import CHOSEN, Under, run

STEPS = 25
SEEDS = 60 if THOROUGH else 2


class Walker:
    """One rank at work: it alone writes to its share of every rank's segment.

    What it has not synced yet is left alone; all else is as the model has it.
    """

    def __init__(self, gasnet: Any, seed: int) -> None:
        self.gasnet = gasnet
        self.me, self.ranks = gasnet.mynode(), gasnet.nodes()
        self.random = Random(seed * 1000 + self.me)
        self.share = PAGE_SIZE // self.ranks
        self.begin = self.me * self.share
        self.model = [bytearray(self.share) for _ in range(self.ranks)]
        self.busy: dict[int, tuple[int, int, int]] = {}  # node, from, to
        self.handles: dict[int, Any] = {}
        self.reading: dict[int, tuple[bytearray, bytes]] = {}
        self.added = 0
        self.number = 0

    def place(self) -> tuple[int, int, int]:
        """A node and a range there that nothing is under way for."""
        while True:
            node = self.random.randrange(self.ranks)
            size = min(int(self.random.expovariate(1 / 60)), self.share)
            at = self.random.randint(0, self.share - size)
            if all(n != node or at >= b or at + size <= a for n, a, b in self.busy.values()):
                return node, at, size

    def step(self) -> None:
        node, at, size = self.place()
        data = self.random.randbytes(size)
        kind = self.random.choice(("put", "put_nb", "put_nb_bulk", "get", "get_nb", "fill", "add"))
        gasnet, offset = self.gasnet, self.begin + at
        expected = bytes(self.model[node][at : at + size])
        if kind == "put":
            gasnet.put(node, offset, data)
        elif kind.startswith("put_nb"):
            source = bytearray(data)
            self.under_way(getattr(gasnet, kind)(node, offset, source), node, at, size)
            if kind == "put_nb":
                source[:] = bytes(size)
        elif kind == "get":
            back = bytearray(size)
            gasnet.get(back, node, offset)
            assert back == expected
        elif kind == "get_nb":
            back = bytearray(size)
            number = self.under_way(gasnet.get_nb(back, node, offset), node, at, size)
            self.reading[number] = back, expected
        elif kind == "fill":
            data = bytes([size & 0xFF]) * size
            gasnet.memset(node, offset, size & 0xFF, size)
        else:
            gasnet.am_request_medium(node, "add", data[:60], size)
            self.added += size
        if kind.startswith("put") or kind == "fill":
            self.model[node][at : at + size] = data

    def under_way(self, handle: Any, node: int, at: int, size: int) -> int:
        self.number += 1
        self.handles[self.number] = handle
        if handle is not INVALID_HANDLE:
            self.busy[self.number] = node, at, at + size
        return self.number

    def sync(self, every: bool = False) -> None:
        chosen = [n for n in self.handles if every or self.random.random() < 0.4]
        handles = [self.handles.pop(number) for number in chosen]
        self.gasnet.wait_syncnb_all(handles)
        for number in chosen:
            self.busy.pop(number, None)
            if number in self.reading:
                back, expected = self.reading.pop(number)
                assert back == expected


@pytest.mark.parametrize("under", CHOSEN.values(), ids=CHOSEN)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_programs(under: Under, seed: int) -> None:
    came = [0, 0, 0]
    ranks = 2 + seed % 2

    def program(gasnet: Any) -> int:
        gasnet.init()
        me = gasnet.mynode()

        def add(_token: Any, _payload: memoryview, size: int) -> None:
            came[me] += size

        gasnet.attach([add])
        gasnet._indices["add"] = gasnet._indices[add]
        walker = Walker(gasnet, seed)
        for _ in range(STEPS):
            walker.step()
            if walker.random.random() < 0.3:
                walker.sync()
            if walker.random.random() < 0.05:
                gasnet.am_poll()
        walker.sync(every=True)
        gasnet.barrier()
        back = bytearray(walker.share)
        for node in range(walker.ranks):
            gasnet.get(back, node, walker.begin)
            assert back == walker.model[node]
        gasnet._engine.spend(1_000_000)
        gasnet.am_poll()
        gasnet.barrier()
        return walker.added

    sent = run(under, ranks, program, seed=seed)
    assert sum(sent) == sum(came)
