"""Random posts of several ranks into each other's memory, against plain models of it.

Each rank has a part of everybody's memory to itself, and one word that all add to. Posts are begun
without waiting as long as they touch different bytes; things run out, come late and are refused.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from ompy.frameworks.nic.gni import AtomicCommand, Ordering, PostType, ReturnCode

from tests.support.effort import effort
from tests.support.gni_job import GniRank, gni_world

RANKS = 3
PART = 1024  # bytes of each rank's memory that belong to each rank
POSTS = 40
WORD = RANKS * PART  # where the word is that all add to
SETTINGS: list[dict[str, Any]] = [
    {"hosts": (0, 0, 0), "late": 0},
    {"hosts": (0, 0, 0), "late": 60, "refuse": 30, "ring_slots": 2},
    {"hosts": (0, 1, 2), "late": 0, "posts": 2},
    {"hosts": (0, 0, 1), "late": 40, "refuse": 10},
]


class Worker:
    """One rank's work.

    Attributes:
        adds: begun.
        models: what its part of each peer's memory is to hold.
    """

    def __init__(self, rank: GniRank, seed: int) -> None:
        self.rank = rank
        self.chance = Random(seed * RANKS + rank.context.rank)
        self.base = rank.context.rank * PART
        self.models = {peer: bytearray(PART) for peer in rank.endpoints}
        self.room = memoryview(bytearray(POSTS * 256))
        self.handle = rank.register(self.room)
        self.adds = 0
        self.under_way: list[tuple[int, range, Any, Any]] = []

    def post(self, number: int) -> None:
        chance, rank = self.chance, self.rank
        peer = chance.choice(list(self.models))
        begin, size = 4 * chance.randrange(PART // 4 - 64), 4 * chance.randrange(65)
        if chance.randrange(4) == 0:
            command = {"command": AtomicCommand.ADD, "first_operand": 1}
            rank.post(peer, PostType.AMO, b"", WORD, **command)
            self.adds += 1
            return
        touched = range(begin, begin + size)
        if any(other == peer and overlap(touched, its) for other, its, *_ in self.under_way):
            self.settle()
        part, rdma = self.room[number * 256 : number * 256 + size], chance.randrange(2)
        expected: bytes | None = None
        if chance.randrange(2):
            part[:] = chance.randbytes(size)
            self.models[peer][begin : begin + size] = part
            type_ = PostType.RDMA_PUT if rdma else PostType.FMA_PUT
        else:
            expected = bytes(self.models[peer][begin : begin + size])
            type_ = PostType.RDMA_GET if rdma else PostType.FMA_GET
        post = rank.post(peer, type_, part, self.base + begin, local_handle=self.handle)
        self.under_way.append((peer, touched, post, expected))

    def settle(self) -> None:
        """Wait until all is done, and look at it."""
        for _, _, post, expected in self.under_way:
            assert self.rank.done(post) is ReturnCode.SUCCESS
            assert expected is None or bytes(post.local) == expected
        self.under_way.clear()


def adds_done(rank: GniRank) -> int:
    return sum(event.post.type is PostType.AMO for event in rank.events if event.post)


def overlap(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", range(effort(4)))
def test_memory_is_as_the_models_have_it(seed: int, settings: dict[str, Any]) -> None:
    def program(rank: GniRank) -> tuple[dict[int, bytes], bytes, int]:
        worker = Worker(rank, seed)
        for number in range(POSTS):
            worker.post(number)
        worker.settle()
        rank.wait(lambda: adds_done(rank) == worker.adds)
        rank.fence()
        models = {peer: bytes(model) for peer, model in worker.models.items()}
        return models, rank.memory, worker.adds

    ordering = list(Ordering)[seed % 3]
    generation = "gemini" if seed % 2 else "aries"
    more = {"seed": seed, "ordering": ordering, "generation": generation}
    found = gni_world([program] * RANKS, **more, **settings)
    for owner, (models, _, _) in enumerate(found):
        for peer, model in models.items():
            memory = found[peer][1]
            assert bytes(memory[owner * PART : (owner + 1) * PART]) == model
    total = sum(int.from_bytes(memory[WORD : WORD + 8], "little") for _, memory, _ in found)
    assert total == sum(adds for *_, adds in found)
