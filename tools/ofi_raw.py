#!/usr/bin/env python3
"""How fast libfabric is from Python with nothing above the binding: the baseline for btl/ofi.

    tools/ofi_raw.py [--providers shm,tcp;ofi_rxm] [--sizes 8,4096,1048576] [--json FILE]

Two processes of this host. `write`, `read` and `fetch-add` are one operation after the other from
rank 0, whose peer only reads its queue; `send` is half a round trip of a ping-pong. Microseconds:
minimum and median of the rounds, each a mean over its operations. Writes are posted with
DELIVERY_COMPLETE unless `--local` is given, and no queue has a descriptor unless `--wait` is.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from ompy.engine.real import RealEngine
from ompy.frameworks.nic.fabric import Caps, Datatype, Hints, MrMode, Op
from ompy.mca.component import NotAvailable
from ompy.mca.parameter import Values
from ompy.net.base import Interface
from ompy.net.real import RealNetwork
from ompy.runtime.world import LonelyWireUp
from ompy_components.nic.libfabric.component import COMPONENT
from sweep import ROOT

sys.path.insert(0, str(ROOT))  # for the rounds, which the loops of btl/ofi have too

from tests.support.rounds import measured

PROVIDERS: Final = "shm,tcp;ofi_rxm,udp;ofi_rxd,sockets"
SIZES: Final = "8,4096,65536,1048576"
LARGEST: Final = 1 << 22  # bytes of each side's memory
LOOPBACK: Final = Interface("lo", "127.0.0.1", 8, loopback=True)


class End:
    """One process's endpoint, and its peer's memory."""

    def __init__(self, peer: Connection, provider: str, flags: Caps, *, wait: bool) -> None:
        from ompy_components.nic.libfabric.device import make
        from ompy_components.nic.libfabric.library import load

        defaults = {parameter.name: parameter.default for parameter in COMPONENT.parameters}
        values = Values({**defaults, "wait": wait})
        library = load(values.library, values.sockets_waittime, values.compiled)
        context: Any = SimpleNamespace(network=RealNetwork(RealEngine(1), 0, LonelyWireUp()))
        self.nic: Any = make(context, library, [LOOPBACK], values)[0]
        offered = MrMode.VIRT_ADDR | MrMode.ALLOCATED | MrMode.PROV_KEY
        needed = Caps.MSG | Caps.RMA | Caps.ATOMIC
        infos = self.nic.infos(Hints(needed, mr_mode=offered, op_flags=flags, provider=provider))
        if not infos:
            raise NotAvailable(f"this library has no {provider}")
        domain = self.nic.domain(infos[0])
        vector = domain.address_vector()
        self.queue: Any = domain.completion_queue()
        self.endpoint = domain.endpoint(vector, self.queue)
        self.endpoint.enable()
        self.memory = memoryview(bytearray(LARGEST))
        access = Caps.READ | Caps.WRITE | Caps.REMOTE_READ | Caps.REMOTE_WRITE
        region = domain.register(self.memory, access, 77)
        peer.send((self.endpoint.name(), region.base, region.key))
        name, self.base, self.key = peer.recv()
        self.to = vector.insert(name)

    def take(self, count: int = 1) -> None:
        """Read the queue until so many have completed."""
        while count:
            done = self.queue.read(8)
            if not done:
                os.sched_yield()
            for one in done:
                if one.error:
                    raise RuntimeError(one.detail)
                count -= 1

    def post(self, call: Callable[..., bool], *arguments: object) -> int:
        """Post until it is taken; how many others completed meanwhile."""
        others = 0
        while not call(*arguments):
            others += len(self.queue.read(8))
        return others

    def one(self, operation: str, view: memoryview) -> None:
        """One operation from beginning to end."""
        end = self.endpoint
        if operation == "write":
            self.post(end.write, view, None, self.to, self.base, self.key, 0)
        elif operation == "read":
            self.post(end.read, view, None, self.to, self.base, self.key, 0)
        else:
            word = (Datatype.UINT64, Op.SUM, 0)
            old = self.memory[64:72]
            self.post(end.fetch_atomic, view, old, None, self.to, self.base, self.key, *word)
        self.take()


def serve(peer: Connection, provider: str, flags: Caps, wait: bool) -> None:
    """The other process: reads its queue until it is told something else."""
    end = End(peer, provider, flags, wait=wait)
    while True:
        while not peer.poll():
            end.queue.read(8)
            os.sched_yield()
        what = peer.recv()
        if what is None:
            break
        size, count = what
        end.post(end.endpoint.receive, end.memory[LARGEST // 2 :][:size], None, 0)
        peer.send("ready")
        play(end, size, count, first=False)
    end.nic.close()


def play(end: End, size: int, count: int, *, first: bool) -> None:
    """A ping-pong: who is first sends and then receives."""
    out, back = end.memory[:size], end.memory[LARGEST // 2 :][:size]
    sent = received = 0
    posted = 1
    while sent < count or received < count:
        may_send = sent < count and (sent <= received if first else sent < received)
        if may_send and end.endpoint.send(out, None, end.to, "sent"):
            sent += 1
        done = end.queue.read(8)
        if not done:
            os.sched_yield()
        for one in done:
            if one.context != "sent":
                received += 1
                if posted < count:
                    posted += 1
                    while not end.endpoint.receive(back, None, 0):
                        pass
    end_of_sends = time.monotonic() + 1  # their completions, before something else is counted
    while end.queue.contexts.held and time.monotonic() < end_of_sends:
        end.queue.read(8)


def repeat(end: End, operation: str, view: memoryview, count: int) -> None:
    """So many operations, one after the other."""
    for _ in range(count):
        end.one(operation, view)


def pong(end: End, peer: Connection, size: int, count: int) -> None:
    """So many messages each way."""
    end.post(end.endpoint.receive, end.memory[LARGEST // 2 :][:size], None, 0)
    peer.send((size, count))
    while not peer.poll():
        end.queue.read(8)
        os.sched_yield()
    peer.recv()
    play(end, size, count, first=True)


def measure(provider: str, sizes: list[int], flags: Caps, *, wait: bool) -> list[dict[str, object]]:
    """All operations over one provider."""
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("fork").Process(
        target=serve, args=(there, provider, flags, wait)
    )
    server.start()
    there.close()
    end = End(here, provider, flags, wait=wait)
    found: list[dict[str, object]] = []

    def note(operation: str, size: int, act: Callable[[int], None], share: int = 1) -> None:
        least, middle = (one * 1e6 / share for one in measured(act))
        found.append(
            {"provider": provider, "operation": operation, "bytes": size,
             "min_us": round(least, 2), "median_us": round(middle, 2)}
        )  # fmt: skip
        print(f"{provider:12} {operation:10} {size:9} {least:10.2f} {middle:10.2f}", flush=True)

    for size in sizes:
        for operation in ("write", "read"):
            note(operation, size, partial(repeat, end, operation, end.memory[:size]))
        note("send", size, partial(pong, end, here, size), 2)
    # not first: ofi_rxd of 1.17 crashes both ends when the first work for a peer is an atomic
    note("fetch-add", 8, partial(repeat, end, "fetch-add", end.memory[:8]))
    here.send(None)
    deadline = time.monotonic() + 5
    while server.is_alive() and time.monotonic() < deadline:
        end.queue.read(8)
    end.nic.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--providers", default=PROVIDERS)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--local", action="store_true", help="without DELIVERY_COMPLETE")
    parser.add_argument("--wait", action="store_true", help="with descriptors to sleep on")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    flags = Caps(0) if options.local else Caps.DELIVERY_COMPLETE
    sizes = [int(size) for size in options.sizes.split(",")]
    print(f"{'provider':12} {'operation':10} {'bytes':>9} {'min us':>10} {'median us':>10}")
    found: list[dict[str, object]] = []
    for provider in options.providers.split(","):
        # in a process of its own: one that has used the library cannot be forked
        here, there = multiprocessing.Pipe()
        child = multiprocessing.get_context("fork").Process(
            target=lambda: there.send(measure(provider, sizes, flags, wait=options.wait))  # noqa: B023
        )
        child.start()
        there.close()
        try:
            found += here.recv()
        except EOFError:
            print(f"{provider} ended early", file=sys.stderr)
            return 1
        child.join()
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
