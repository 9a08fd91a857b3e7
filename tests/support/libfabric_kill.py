"""Two processes over one of libfabric's providers, of which one is killed: `... PROVIDER SECONDS`.

The survivor prints, as JSON, after how long its work under way ended and with which errors, or null
when nothing had ended in the time it was given; it has closed everything by then.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ompy.engine.real import RealEngine
from ompy.frameworks.nic.fabric import FabricError
from ompy.net.real import RealNetwork
from ompy.runtime.launching.singleton import SingletonWireUp

from tests.support.fabric_programs import Side, best
from tests.support.libfabric_devices import fabric_nic


def meet(rank: int, peer: Connection, provider: str) -> Side:
    """Open one end."""

    def swap(said: bytes) -> bytes:
        peer.send_bytes(said)
        return peer.recv_bytes()

    engine = RealEngine(1)
    nic = fabric_nic(RealNetwork(engine, rank, SingletonWireUp()))
    side = Side(engine, rank, nic, best(nic, provider), swap)
    side.meet()
    return side


def victim(peer: Connection, provider: str) -> None:
    """Be there, and die."""
    side = meet(1, peer, provider)
    deadline = time.monotonic() + 1  # the other has to have its last completions
    while time.monotonic() < deadline and not peer.poll():
        side.poll()
    os.kill(os.getpid(), signal.SIGKILL)


def survivor(peer: Connection, provider: str, child: Any, patience: float) -> object:
    """Write to the dead one."""
    side = meet(0, peer, provider)
    peer.send_bytes(b"die")
    child.join()
    for left in Path("/dev/shm").glob(f"{child.pid}:*"):
        left.unlink()
    errors: set[int] = set()
    begun = time.monotonic()
    while not errors and time.monotonic() < begun + patience:
        try:
            side.endpoint.write(
                side.memory[:4096], None, side.to, side.there.base, side.there.key, "w"
            )
            side.poll()
        except FabricError as problem:
            errors.add(problem.errno)
        errors |= {one.error for one in side.done if one.error}
        time.sleep(0.01)
    took = time.monotonic() - begun
    side.close()
    return [took, sorted(errors)] if errors else None


def main() -> None:
    here, there = multiprocessing.Pipe()
    provider = sys.argv[1]
    child = multiprocessing.get_context("fork").Process(target=victim, args=(there, provider))
    child.start()
    print(json.dumps(survivor(here, provider, child, float(sys.argv[2]))))


if __name__ == "__main__":
    main()
