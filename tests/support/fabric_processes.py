"""Programs of two real ranks with a fabric device; names and keys go over the PML."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any

from ompy.frameworks.nic.fabric import FabricError, FabricNic
from ompy.frameworks.pml import STANDARD
from ompy.runtime.process import RankProcess

from tests.sim.p2p.programs import buffer, send, world
from tests.support.fabric_programs import PROGRAMS, SECOND, Side, best

DEVICE = os.environ.get("OMPY_TEST_FABRIC", "ofi_emulated")
PROVIDERS = os.environ.get("OMPY_TEST_PROVIDERS", "emulated")  # separated by commas
WAIT = 20  # s


def swapper(process: RankProcess) -> Any:
    """Gives the other rank bytes, and has its."""
    comm, pml = world(process), process.pml

    def swap(mine: bytes) -> bytes:
        memory, room = buffer(4096)
        peer = 1 - comm.rank
        receive = pml.irecv(comm, room, peer, 1)
        request = pml.isend(comm, send(mine), peer, 1, STANDARD)
        pml.wait(comm, receive)
        pml.wait(comm, request)
        return bytes(memory[: receive.length])

    return swap


def opened(process: RankProcess) -> FabricNic:
    (nic,) = process.context.find_nics(FabricNic, DEVICE)
    nic.open()
    return nic


def all_programs(process: RankProcess) -> list[list[str]]:
    """Every program over every provider asked for. Returns what was run."""
    nic = opened(process)
    found = []
    for provider in PROVIDERS.split(","):
        for name, program in PROGRAMS.items():
            info = best(nic, provider)
            swap = swapper(process)
            side = Side(process.context.engine, process.context.rank, nic, info, swap)
            program(side)
            side.close()
            found.append([provider, name])
    nic.close()
    return found


def peer_is_killed(process: RankProcess) -> list[Any]:
    """Rank 1 stops in the middle of rank 0's writes. Returns the errors and how long they took."""
    nic = opened(process)
    engine = process.context.engine
    side = Side(engine, process.context.rank, nic, best(nic, PROVIDERS), swapper(process))
    side.meet()
    if process.context.rank == 1:
        engine.wait_until(lambda: side.memory[0] == 7, WAIT * SECOND)
        for domain in list(nic.domains):  # type: ignore[attr-defined]
            for responder in list(domain._responders):
                responder._stream.close()  # as the kernel does for a process that was killed
            domain._door._listener.close()
        engine.remove_poller(side)
        swapper(process)(b"done")
        return []
    side.memory[:] = bytes([7]) * len(side.memory)
    begun = time.monotonic()
    posted, told = 0, 0
    with suppress(FabricError):
        while posted < 1000:
            side.write(0, 200_000, 0, posted)
            posted += 1
    engine.wait_until(lambda: len(side.done) == posted, WAIT * SECOND)
    took = time.monotonic() - begun
    assert [one.context for one in side.done] == list(range(posted))
    errors = sorted({one.errno for one in side.done})
    try:
        side.write(0, 8, 0, "more")
    except FabricError as problem:
        told = problem.errno
    swapper(process)(b"done")
    return [errors, told, took < WAIT]
