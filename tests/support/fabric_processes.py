"""Programs of two real ranks with the emulated fabric; names and keys go over the PML."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress

from ompy.frameworks.nic.fabric import FabricNic
from ompy.frameworks.pml import STANDARD
from ompy.runtime.ranks.process import RankProcess

from tests.sim.p2p.programs import buffer, send, world
from tests.support.fabric_programs import PROGRAMS, Side, best
from tests.support.fabric_streams import random_work

PROVIDERS = ("emulated", "emulated;offset")
OPERATIONS = 400


def swapper(process: RankProcess) -> Callable[[bytes], bytes]:
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


def sockets() -> int:
    """TCP sockets that are open; what the engine opens when it parks is none."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                with socket.socket(fileno=os.dup(int(name))) as one:
                    found += one.family == socket.AF_INET
    return found


def all_programs(process: RankProcess) -> tuple[list[list[str]], int]:
    """Every program, and random work of both sides, over some providers.

    Returns:
        What was run, and how many sockets more than before are open.
    """
    (nic,) = process.context.find_nics(FabricNic, "ofi_emulated")
    nic.open()
    programs = {**PROGRAMS, "random": lambda side: random_work(side, 1, OPERATIONS)}
    swap, found = swapper(process), []
    before = sockets()
    for provider in PROVIDERS:
        for name, program in programs.items():
            info = best(nic, provider)
            side = Side(process.context.engine, process.context.rank, nic, info, swap)
            program(side)
            side.close()
            found.append([provider, name])
    nic.close()
    return found, sockets() - before
