"""Two processes with an emulated fabric, one of them killed in the middle of the other's writes.

The survivor prints as JSON: the errors of what was under way, that of the next attempt to connect,
the seconds until all had ended, and whether all completed once and in order.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from typing import Any

from ompy.engine.real import RealEngine
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import interfaces_for
from ompy.frameworks.nic.fabric import FabricError
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values
from ompy.net.real import RealNetwork
from ompy.runtime.launching.singleton import SingletonWireUp
from ompy.trace.sink import Trace
from ompy_components.nic.ofi_emulated.choice import chosen
from ompy_components.nic.ofi_emulated.device import EmulatedFabric

from tests.support.fabric_job import DEFAULTS
from tests.support.fabric_programs import SECOND, Side, best

WRITES = 1000
SIZE = 200_000


def meet(rank: int, peer: Connection) -> Side:
    """Open one end."""
    engine = RealEngine(1)
    context = RankContext(
        rank,
        [Proc(other, 0, other, "here") for other in range(2)],
        engine=engine,
        network=RealNetwork(engine, rank, SingletonWireUp()),
        wireup=SingletonWireUp(),
        trace=Trace(rank, engine.now),
        job_id=b"j" * 8,
        job_key=b"k" * 32,
    )
    values = Values(DEFAULTS)
    nic = EmulatedFabric(context, interfaces_for(context), chosen(values), values)
    nic.open()

    def swap(said: bytes) -> bytes:
        peer.send_bytes(said)
        return peer.recv_bytes()

    side = Side(engine, rank, nic, best(nic), swap)
    side.meet()
    return side


def victim(peer: Connection) -> None:
    """Take a few writes, and die."""
    side = meet(1, peer)
    side.wait(lambda: side.memory[0] == 7, "the first write")
    os.kill(os.getpid(), signal.SIGKILL)


def survivor(peer: Connection) -> list[Any]:
    """Write to the dying one."""
    side = meet(0, peer)
    side.memory[:] = bytes([7]) * len(side.memory)
    begun = time.monotonic()
    posted, told = 0, 0
    while posted < WRITES and not told:
        try:
            side.write(0, SIZE, 0, posted)
            posted += 1
        except FabricError as problem:
            told = problem.errno
    assert side.engine.wait_until(lambda: len(side.done) == posted, 20 * SECOND)
    took = time.monotonic() - begun
    once = [one.context for one in side.done] == list(range(posted))
    errors = sorted({one.error for one in side.done})
    while not told:
        try:
            side.endpoint.write(side.memory[:8], None, side.to, 0, 0, "more")
            side.poll()
        except FabricError as problem:
            told = problem.errno
    side.close()
    return [errors, told, took, once]


def main() -> None:
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=victim, args=(there,))
    child.start()
    found = survivor(here)
    child.join()
    assert child.exitcode == -signal.SIGKILL
    print(json.dumps(found))


main()
