"""Programs of real ranks that say which protocols their messages took, over which rails."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ompy.data.convertor import ContiguousConvertor
from ompy.frameworks.pml import BUFFERED, STANDARD, SYNCHRONOUS
from ompy.runtime.ranks.process import RankProcess

from tests.sim.ob1.programs import one_message
from tests.sim.p2p.programs import buffer, pattern, world

LARGE = 300_001
BURST = 100  # small messages that find no room any more
PARTS = 4_000_000


def taken(process: RankProcess) -> list[list[str]]:
    """Side and protocol of every message traced so far, as this rank saw it."""
    found = []
    for event in process.context.trace:
        if event.layer == "pml.ob1" and event.name == "PROTOCOL":
            values = dict(event.fields)
            found.append([str(values["side"]), str(values["protocol"])])
    return found


def letters(process: RankProcess) -> list[str]:
    """The lettered steps this rank has traced, each once."""
    steps = set()
    for event in process.context.trace:
        values = dict(event.fields)
        if event.layer == "pml.ob1" and "step" in values:
            steps.add(f"{values['side']} {values['step']} {event.name}")
    return sorted(steps)


def each_protocol(process: RankProcess) -> dict[str, Any]:
    """One message of each kind from rank 0 to rank 1, which checks every byte."""
    process.context.trace.start()
    messages: Sequence[dict[str, Any]] = (
        {"size": 2000, "mode": BUFFERED},  # the very first, before there is a connection
        {"size": 100},
        {"size": 3000},
        {"size": 2000, "mode": SYNCHRONOUS},
        {"size": LARGE},
        {"size": LARGE, "mode": SYNCHRONOUS},
        {"size": LARGE, "mode": BUFFERED},
        {"size": LARGE, "gather": True},
        {"size": LARGE, "scatter": True},
    )
    for message in messages:
        one_message(**message)(process)
    _burst(process)
    return {"taken": taken(process), "steps": letters(process)}


def _burst(process: RankProcess) -> None:
    """So many small messages at once that not all of them find room."""
    comm, pml = world(process), process.pml
    if comm.rank == 0:
        data = pattern(500, 3)
        sends = [
            pml.isend(comm, ContiguousConvertor(memoryview(data)), 1, number, STANDARD)
            for number in range(BURST)
        ]
        for request in sends:
            pml.wait(comm, request)
    else:
        time.sleep(0.05)  # and takes nothing meanwhile
        for number in range(BURST):
            memory, room = buffer(500)
            pml.recv(comm, room, 0, number)
            assert bytes(memory) == pattern(500, 3)


def bytes_by_rail(process: RankProcess) -> dict[str, int]:
    """Large messages both ways at once. Returns the bytes that each rail took from this rank."""
    comm, pml = world(process), process.pml
    process.context.trace.start()
    other = 1 - comm.rank
    memory, room = buffer(PARTS)
    receive = pml.irecv(comm, room, other, 1)
    data = ContiguousConvertor(memoryview(pattern(PARTS, comm.rank)))
    pml.wait(comm, pml.isend(comm, data, other, 1, STANDARD))
    pml.wait(comm, receive)
    assert bytes(memory) == pattern(PARTS, other)
    moved: Counter[str] = Counter()
    for event in process.context.trace:
        values = dict(event.fields)
        if event.layer == "pml.ob1" and values.get("side") == "send" and "rail" in values:
            if event.name == "WRITE":
                moved[str(values["rail"])] += int(str(values["size"]))
            elif event.name != "PUT":
                moved[str(values["rail"])] += int(str(values.get("payload", 0)))
    return dict(moved)
