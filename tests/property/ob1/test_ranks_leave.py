"""Random programs whose ranks leave one after the other, with every order of news and data.

What a rank has sent before it leaves is received, byte for byte; every other wait for it fails with
`MPI_ERR_PROC_FAILED`. Ranks wait in vain only for such as leave before them: else they would wait
for each other, which is a deadlock and no departure.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any, NamedTuple

import pytest
from ompy.data.constants import ANY_SOURCE
from ompy.data.convertor import ContiguousConvertor
from ompy.data.errors import ERR_PROC_FAILED
from ompy.frameworks.pml import STANDARD, SYNCHRONOUS
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.sim.p2p.programs import pattern, world
from tests.support.effort import effort
from tests.support.worlds import registry

WORLDS = effort(10)
SIZES = (0, 8, 300, 5000, 70_000, 400_000)
NEWS = (1, 1000, 100_000, 10_000_000, 2_000_000_000)  # ns that news of a departure take
PATIENCE = 4000  # ms: longer than any news here takes to be followed by what they overtook
NOBODYS = 99  # a tag that nobody sends with
BTLS = ("sm", "tcp", "usnic", "openib", "ofi", "sm,tcp")


class Pair(NamedTuple):
    """What one rank sends another, and how many receives that has for it."""

    messages: tuple[tuple[int, int], ...]  # size, mode
    receives: int

    def sends_fail(self, number: int) -> bool:
        """Whether this message is waited for in vain; an eager one may end either way."""
        size, mode = self.messages[number]
        return number >= self.receives and (mode == SYNCHRONOUS or size >= SIZES[-1])


class Plan:
    """One random program."""

    def __init__(self, seed: int) -> None:
        chance = Random(seed)
        self.ranks = chance.choice((2, 3, 4))
        self.order = chance.sample(range(self.ranks), self.ranks)  # they leave in this order
        place = {rank: at for at, rank in enumerate(self.order)}
        self.pairs: dict[tuple[int, int], Pair] = {}
        for source in range(self.ranks):
            for target in range(self.ranks):
                if source == target or chance.random() < 0.25:
                    continue
                count = chance.choice((0, 1, 2, 5))
                messages = tuple(
                    (chance.choice(SIZES), chance.choice((STANDARD, STANDARD, SYNCHRONOUS)))
                    for _ in range(count)
                )
                receives = count
                if place[source] < place[target]:
                    receives += chance.choice((0, 1, 2))
                else:
                    receives = max(0, count - chance.choice((0, 0, 1, 3)))
                self.pairs[source, target] = Pair(messages, receives)
        self.settings = {"btl": f"self,{chance.choice(BTLS)}", "pml": chance.choice(("ob1", "bfo"))}
        self.settings[f"pml_{self.settings['pml']}_leave_patience_ms"] = str(PATIENCE)
        self.rails = [Rail(f"rail{number}") for number in range(chance.choice((1, 2)))]
        self.hosts = [chance.randrange(2) if "tcp" in self.settings["btl"] else 0] * self.ranks
        self.pauses = [chance.choice((0, 100, 1_000_000)) for _ in range(self.ranks)]
        self.news = partial(chance.choice, (chance.choice(NEWS), chance.choice(NEWS)))


def program(process: RankProcess, plan: Plan) -> dict[str, Any]:
    """Begin all, in some order, and wait for all, in some order; how each ended."""
    comm, pml, engine = world(process), process.pml, process.context.engine
    chance = Random(f"{plan.pauses}{comm.rank}")
    begins: dict[tuple[int, int, str], list[Any]] = {}
    memory: dict[tuple[str, int, int], bytearray] = {}
    for (source, target), pair in plan.pairs.items():
        if source == comm.rank:
            begins[source, target, "send"] = list(range(len(pair.messages)))
        elif target == comm.rank:
            begins[source, target, "receive"] = list(range(pair.receives))
    under_way = {}
    while any(begins.values()):
        source, target, what = key = chance.choice([key for key in begins if begins[key]])
        number = begins[key].pop(0)
        if what == "send":
            size, mode = plan.pairs[source, target].messages[number]
            view = memoryview(pattern(size, number))
            made = pml.isend(comm, ContiguousConvertor(view), target, 1, mode)
        else:
            room = memory["receive", source, number] = bytearray(SIZES[-1])
            made = pml.irecv(comm, ContiguousConvertor(memoryview(room)), source, 1)
        under_way[what, target if what == "send" else source, number] = made
        if chance.random() < 0.2:
            engine.spend(plan.pauses[comm.rank] + 1)
    if comm.rank == plan.order[-1]:
        room = bytearray(8)
        under_way["any", 0, 0] = pml.irecv(
            comm, ContiguousConvertor(memoryview(room)), ANY_SOURCE, NOBODYS
        )
    for key in chance.sample(list(under_way), len(under_way)):
        engine.wait(under_way[key])
    return {
        "ends": {key: request.error for key, request in under_way.items()},
        "data": {
            key: bytes(memory[key][: request.length])
            for key, request in under_way.items()
            if key in memory and not request.error
        },
    }


@pytest.mark.parametrize("seed", range(WORLDS))
def test_what_was_sent_is_received_and_all_else_fails(seed: int) -> None:
    plan = Plan(seed)
    job = VirtualJob(
        plan.ranks, registry(**plan.settings), seed=seed, rails=plan.rails, hosts=plan.hosts
    )
    job.news_after = plan.news
    results = job.run(partial(program, plan=plan))
    for (source, target), pair in plan.pairs.items():
        for number in range(pair.receives):
            key = ("receive", source, number)
            if number < len(pair.messages):
                assert results[target]["ends"][key] == 0, (plan.settings, source, target, number)
                size, _ = pair.messages[number]
                assert results[target]["data"][key] == pattern(size, number)
            else:
                assert results[target]["ends"][key] == ERR_PROC_FAILED
        for number in range(len(pair.messages)):
            code = results[source]["ends"]["send", target, number]
            if pair.sends_fail(number):
                assert code == ERR_PROC_FAILED
            elif number < pair.receives:
                assert code == 0
    assert results[plan.order[-1]]["ends"]["any", 0, 0] == ERR_PROC_FAILED
