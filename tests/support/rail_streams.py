"""What bfo gets over rails of openib in virtual time, on the clock of nic/hca."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ompy.frameworks.pml import STANDARD
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.sim.p2p import programs
from tests.support.scripted_world import install
from tests.support.worlds import registry

UNDER_WAY: Final = 8  # messages
MTU: Final = 9_000  # bytes; so that an adapter's packet of 4096 fits


def goodput(
    rails: int, size: int, count: int, rules: Sequence[FaultRule] = (), **settings: object
) -> float:
    """Mbit/s that one rank gets over to another, each message looked at.

    Args:
        rails: between two hosts, each with the adapter's own link.
        size: of a message, bytes.
        count: of messages.
        rules: of a fault script, of which each has to strike.
        settings: more parameters.
    """
    ways = [Rail(f"rail{number}", jitter=0, mtu=MTU, chosen=False) for number in range(rails)]
    parts = registry(btl="self,openib", pml="bfo", **settings)
    job = VirtualJob(2, parts, rails=ways, hosts=[0, 1])
    scripts = install(job, rules)

    def program(process: Any) -> int:
        return _stream(process, size, count)

    took = max(job.run(program))
    for counts in zip(*(script.delivered for script in scripts), strict=True):
        assert sum(counts), "a fault never struck"
    return count * size * 8_000 / took


def _stream(process: Any, size: int, count: int) -> int:
    """Nanoseconds for all messages, from the first to the answer to the last."""
    comm, pml, engine = programs.world(process), process.pml, process.context.engine
    word, room = programs.buffer(1)
    _pass(process, programs.pattern(1, 0), word, room)  # rails are connected by it
    data = programs.pattern(size, 1)
    rooms = [programs.buffer(size) for _ in range(UNDER_WAY)]
    begun = engine.now()
    requests: list[Any] = [None] * UNDER_WAY
    for number in range(count + UNDER_WAY):
        place = number % UNDER_WAY
        if requests[place] is not None:
            pml.wait(comm, requests[place])
            assert comm.rank == 0 or bytes(rooms[place][0]) == data, number
            requests[place] = None
        if number < count and comm.rank == 0:
            requests[place] = pml.isend(comm, programs.send(data), 1, 1, STANDARD)
        elif number < count:
            requests[place] = pml.irecv(comm, rooms[place][1], 0, 1)
    _pass(process, b"-", word, room)
    return int(engine.now() - begun)


def _pass(process: Any, data: bytes, word: Any, room: Any) -> None:
    """A word from rank 1 to rank 0, and one back."""
    comm, pml = programs.world(process), process.pml
    if comm.rank == 1:
        pml.send(comm, programs.send(data), 0, 2, STANDARD)
        pml.recv(comm, room, 0, 2)
    else:
        pml.recv(comm, room, 1, 2)
        pml.send(comm, programs.send(data), 1, 2, STANDARD)
