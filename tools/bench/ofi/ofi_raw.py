#!/usr/bin/env python3
"""How fast libfabric is from Python with cffi and nothing else: the baseline for btl/ofi.

    tools/bench/ofi/ofi_raw.py [--providers shm,tcp;ofi_rxm] [--sizes 8,4096,1048576] [--json FILE]

Two processes of this host. The binding opens everything; the loops then call libfabric's functions
through cffi, as one would write it by hand: one buffer, one context, one array for completions, all
made before. `write`, `read` and `fetch-add` are one operation after the other from rank 0, whose
peer only reads its queue; `send` is half a round trip of a ping-pong, by `fi_inject` what fits it.
Who finds an empty queue looks again at once, or gives way where the provider has threads or the
host one processor. Microseconds: minimum and median of the rounds, each a mean over its operations.
Writes are posted with DELIVERY_COMPLETE unless `--local` is given, and no queue has a descriptor
unless `--wait` is. With a compiled tree the functions are those of `calls_source.py`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable
from errno import EAGAIN
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
from ompy.runtime.launching.singleton import SingletonWireUp
from ompy_components.nic.libfabric.component import COMPONENT

ROOT: Final = Path(__file__).resolve().parents[3]

sys.path.insert(0, str(ROOT))  # for the rounds, which the loops of btl/ofi have too

from tests.support.rounds import keep_apart, measured, pages, pause_for  # noqa: E402

PROVIDERS: Final = "shm,tcp;ofi_rxm,udp;ofi_rxd,sockets"
SIZES: Final = "8,4096,65536,1048576"
LARGEST: Final = 1 << 22  # bytes of each side's memory
ENTRIES: Final = 8  # completions read at once; arbitrary
SLOT: Final = 64  # bytes of a context; libfabric: sizeof(struct fi_context2)
ANYBODY: Final = (1 << 64) - 1  # libfabric: FI_ADDR_UNSPEC
GLANCES: Final = 500  # arbitrary: so often the queue is read before the pipe is looked at
LOOPBACK: Final = Interface("lo", "127.0.0.1", 8, loopback=True)


class End:
    """One process's endpoint, and its peer's memory; what the loops need of it by name."""

    def __init__(self, peer: Connection, provider: str, flags: Caps, *, wait: bool) -> None:
        from ompy_components.nic.libfabric.device import make_devices
        from ompy_components.nic.libfabric.library import load_library

        defaults = {parameter.name: parameter.default for parameter in COMPONENT.parameters}
        values = Values({**defaults, "wait": wait})
        library = load_library(values.library, values.sockets_waittime, values.compiled)
        wireup = SingletonWireUp()
        network = RealNetwork(RealEngine(1), 0, wireup)
        context: Any = SimpleNamespace(network=network, wireup=wireup)
        self.nic: Any = make_devices(context, library, [LOOPBACK], values)[0]
        offered = MrMode.VIRT_ADDR | MrMode.ALLOCATED | MrMode.PROV_KEY
        needed = Caps.MSG | Caps.RMA | Caps.ATOMIC
        infos = self.nic.infos(Hints(needed, mr_mode=offered, op_flags=flags, provider=provider))
        if not infos:
            raise NotAvailable(f"this library has no {provider}")
        domain = self.nic.domain(infos[0])
        vector = domain.address_vector()
        self.queue: Any = domain.completion_queue()
        endpoint: Any = domain.endpoint(vector, self.queue)
        endpoint.enable()
        self.memory = pages(LARGEST)
        access = Caps.READ | Caps.WRITE | Caps.REMOTE_READ | Caps.REMOTE_WRITE
        region = domain.register(self.memory, access, 77)
        peer.send((endpoint.name(), region.base, region.key))
        name, self.base, self.key = peer.recv()
        self.to = vector.insert(name)
        self.inject_size = infos[0].inject_size
        self.pause = pause_for(infos[0].progress)
        self.ffi = library.ffi
        self.fid = endpoint.fid
        self._bind(library)

    def _bind(self, library: Any) -> None:
        """The functions, the contexts and the array."""
        ffi, fid = self.ffi, self.fid
        self.slots = ffi.new("char[]", 3 * SLOT)
        first = int(ffi.cast("uintptr_t", self.slots))
        self.slot, self.posted = first + -first % SLOT, first + -first % SLOT + SLOT
        self.entries = ffi.new("struct fi_cq_msg_entry[]", ENTRIES)
        self.read_queue = library.often("cq", self.queue.fid.ops, "read")
        self.send = library.often("msg", fid.msg, "send")
        self.inject = library.often("msg", fid.msg, "inject")
        self.receive = library.often("msg", fid.msg, "recv")
        self.moves = {
            "write": library.often("rma", fid.rma, "write"),
            "read": library.often("rma", fid.rma, "read"),
        }
        self.fetch = library.often("atomic", fid.atomic, "readwrite")

    def glance(self) -> int:
        """Read the queue once; how many have completed."""
        count: int = self.read_queue(self.queue.fid, self.entries, ENTRIES)
        if count > 0:
            return count
        if count != -EAGAIN:
            raise RuntimeError(f"reading the queue: {count}")
        self.pause()
        return 0

    def post(self, call: Callable[..., int], *arguments: object) -> None:
        """Post until it is taken; nothing else may be under way."""
        while result := call(self.fid, *arguments):
            if result != -EAGAIN:
                raise RuntimeError(f"posting: {result}")
            self.glance()


def serve(peer: Connection, provider: str, flags: Caps, wait: bool) -> None:
    """The other process: reads its queue until it is told something else."""
    end = End(peer, provider, flags, wait=wait)
    keep_apart(1)
    while True:
        while not peer.poll():
            for _ in range(GLANCES):
                end.glance()
        what = peer.recv()
        if what is None:
            break
        size, count = what
        back = end.ffi.from_buffer(end.memory[LARGEST // 2 :][:size])
        end.post(end.receive, back, size, 0, ANYBODY, end.posted)
        peer.send("ready")
        play(end, size, count, first=False)
    end.nic.close()


def play(end: End, size: int, count: int, *, first: bool) -> None:
    """A ping-pong: who is first sends and then receives. A receive is posted."""
    out = end.ffi.from_buffer(end.memory[:size])
    back = end.ffi.from_buffer(end.memory[LARGEST // 2 :][:size])
    entries, posted, slot = end.entries, end.posted, end.slot
    small = size <= end.inject_size
    sent = received = sending = 0
    while received < count or sent < count or sending:
        if not sending and sent < count and (sent <= received if first else sent < received):
            if small:
                result = end.inject(end.fid, out, size, end.to)
            else:
                result = end.send(end.fid, out, size, 0, end.to, slot)
                sending = not result
            if result and result != -EAGAIN:
                raise RuntimeError(f"sending: {result}")
            sent += not result
        for index in range(end.glance()):
            if entries[index].op_context == posted:
                received += 1
                if received < count:
                    end.post(end.receive, back, size, 0, ANYBODY, posted)
            else:
                sending = 0


def repeat(end: End, operation: str, view: memoryview, count: int) -> None:
    """So many operations, one after the other."""
    buffer = end.ffi.from_buffer(view)
    read_queue, queue, entries, fid = end.read_queue, end.queue.fid, end.entries, end.fid
    place, pause = (end.to, end.base, end.key), end.pause
    if operation == "fetch-add":
        call, old = end.fetch, end.ffi.from_buffer(end.memory[64:72])
        arguments = (buffer, 1, 0, old, 0, *place, Datatype.UINT64, Op.SUM, end.slot)
    else:
        call = end.moves[operation]
        arguments = (buffer, len(view), 0, *place, end.slot)
    for _ in range(count):
        while result := call(fid, *arguments):
            if result != -EAGAIN:
                raise RuntimeError(f"posting: {result}")
            end.glance()
        while (result := read_queue(queue, entries, ENTRIES)) <= 0:
            if result != -EAGAIN:
                raise RuntimeError(f"reading the queue: {result}")
            pause()


def pong(end: End, peer: Connection, size: int, count: int) -> None:
    """So many messages each way."""
    back = end.ffi.from_buffer(end.memory[LARGEST // 2 :][:size])
    end.post(end.receive, back, size, 0, ANYBODY, end.posted)
    peer.send((size, count))
    while not peer.poll():
        end.glance()
    peer.recv()
    play(end, size, count, first=True)


def _child_ended(*_: object) -> None:
    """Nothing will ever complete: some providers crash their process."""
    raise RuntimeError("the other process has ended")


def measure(
    provider: str, sizes: list[int], flags: Caps, *, wait: bool, atomics: bool
) -> list[dict[str, object]]:
    """All operations over one provider."""
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("fork").Process(
        target=serve, args=(there, provider, flags, wait)
    )
    server.start()
    there.close()
    signal.signal(signal.SIGCHLD, _child_ended)
    end = End(here, provider, flags, wait=wait)
    keep_apart(0)
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
    # not first: ofi_rxd of 1.17 crashes both ends when the first work for a peer is an atomic, and
    # at times here, when it had larger messages to send before
    if atomics:
        note("fetch-add", 8, partial(repeat, end, "fetch-add", end.memory[:8]))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    here.send(None)
    deadline = time.monotonic() + 5
    while server.is_alive() and time.monotonic() < deadline:
        end.glance()
    end.nic.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--providers", default=PROVIDERS)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--local", action="store_true", help="without DELIVERY_COMPLETE")
    parser.add_argument("--wait", action="store_true", help="with descriptors to sleep on")
    parser.add_argument("--no-atomics", action="store_true", help="no fetch-add")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    flags = Caps(0) if options.local else Caps.DELIVERY_COMPLETE
    how = {"wait": options.wait, "atomics": not options.no_atomics}
    sizes = [int(size) for size in options.sizes.split(",")]
    print(f"{'provider':12} {'operation':10} {'bytes':>9} {'min us':>10} {'median us':>10}")
    found: list[dict[str, object]] = []
    for provider in options.providers.split(","):
        # in a process of its own: one that has used the library cannot be forked
        here, there = multiprocessing.Pipe()
        child = multiprocessing.get_context("fork").Process(
            target=lambda: there.send(measure(provider, sizes, flags, **how))  # noqa: B023
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
