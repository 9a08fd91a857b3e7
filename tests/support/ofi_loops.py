"""btl/ofi in a loop, with nothing above it: for `tools/bench ofi_overhead`."""

from __future__ import annotations

import statistics
import time
from functools import partial

from ompy.frameworks.btl import (
    ACCESS_ANY,
    BTL_OWNERSHIP,
    NO_ORDER,
    OUT_OF_RESOURCE,
    PRIORITY,
    QUEUED,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
    ReceiveCallback,
)
from ompy.frameworks.pml import STANDARD
from ompy.runtime.ranks.process import RankProcess
from ompy_components.btl.ofi.module import OfiModule

from tests.sim.p2p.programs import buffer, send, world
from tests.support.rounds import ROUNDS, keep_apart, measured, pages, pause_for

TAG = 0x50  # of no framework
MESSAGE = 8  # bytes of a fragment
SIZES = (8, 4096, 1 << 20)
COUNTED = 1000  # operations of each kind; arbitrary: what is done once does not count
TRIPS = 300  # of a round of ping-pong; arbitrary


class Arrivals(ReceiveCallback):
    """Counts fragments."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def received(self, module: BtlModule, endpoint: Endpoint, tag: int, data: memoryview) -> None:
        self.count += 1


class Loop(CompletionCallback):
    """One rank's end of everything that is measured."""

    __slots__ = ("_heard", "_open", "_pause", "arrivals", "endpoint", "module")

    def __init__(self, process: RankProcess, module: OfiModule) -> None:
        self.module = module
        (endpoint,) = module.add_procs([process.context.procs[1 - process.context.rank]])
        assert endpoint is not None
        self.endpoint = endpoint
        self.arrivals = Arrivals()
        process.context.active_messages.register(TAG, self.arrivals)
        self._open = self._heard = 0
        self._pause = pause_for(module.info.progress)

    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        assert not status, status
        self._open -= 1

    def poll(self) -> None:
        if not self.module.poll():
            self._pause()

    def move(self, call, local: memoryview, key: bytes, count: int) -> None:  # type: ignore[no-untyped-def]
        """So many puts or gets, one after the other."""
        poll, pause = self.module.poll, self._pause
        for _ in range(count):
            self._open += 1
            while (
                result := call(self.endpoint, local, 0, None, key, 0, NO_ORDER, self, None)
            ) == OUT_OF_RESOURCE:
                self.poll()
            assert result == QUEUED, result
            while self._open:
                if not poll():
                    pause()

    def say(self, data: bytes) -> None:
        """Send a fragment."""
        while True:
            made = self.module.alloc(self.endpoint, NO_ORDER, len(data), BTL_OWNERSHIP | PRIORITY)
            if made is not None:
                made.segment[:] = data
                if self.module.send(self.endpoint, made, TAG) >= 0:
                    return
                self.module.free(made)
            self.poll()

    def hear(self) -> None:
        """Wait for the next fragment; it never sleeps: providers move things as it looks."""
        self._heard += 1
        while self.arrivals.count < self._heard:
            self.poll()

    def pong(self, count: int, *, first: bool) -> None:
        """So many fragments each way."""
        data = bytes(MESSAGE)
        for _ in range(count):
            if first:
                self.say(data)
            self.hear()
            if not first:
                self.say(data)


def counted(process: RankProcess) -> None:
    """`COUNTED` puts and gets, and fragments each way: for `tools/bench ofi_instructions`."""
    comm, pml = world(process), process.pml
    (module,) = [one for one in process.context.btls if isinstance(one, OfiModule)]
    loop = Loop(process, module)
    exposed = bytearray(MESSAGE)
    handle = module.register_mem(None, memoryview(exposed), ACCESS_ANY)
    if comm.rank == 1:
        pml.send(comm, send(bytes(handle)), 0, 1, STANDARD)  # type: ignore[call-overload]
        loop.hear()
    else:
        memory, room = buffer(module.registration_handle_size)
        pml.recv(comm, room, 1, 1)
        for call in (module.put, module.get):
            loop.move(call, memoryview(exposed), bytes(memory), COUNTED)
        loop.say(b"over")
    loop.pong(COUNTED, first=comm.rank == 0)
    module.deregister_mem(handle)


def loops(process: RankProcess) -> dict[str, float]:
    """Median microseconds of a put and a get of each size, and of a small fragment one way."""
    comm, pml = world(process), process.pml
    (module,) = [one for one in process.context.btls if isinstance(one, OfiModule)]
    loop = Loop(process, module)
    keep_apart(comm.rank)
    if comm.rank == 1:
        handle = module.register_mem(None, pages(max(SIZES)), ACCESS_ANY)
        pml.send(comm, send(bytes(handle)), 0, 1, STANDARD)  # type: ignore[call-overload]
        loop.hear()
        module.deregister_mem(handle)
        for _ in range(ROUNDS):
            loop.pong(TRIPS, first=False)
        return {}
    memory, room = buffer(module.registration_handle_size)
    pml.recv(comm, room, 1, 1)
    found = {}
    local = pages(max(SIZES))
    for size in SIZES:
        for name, call in (("write", module.put), ("read", module.get)):
            act = partial(loop.move, call, local[:size], bytes(memory))
            found[f"{name} {size}"] = 1e6 * measured(act)[1]
    loop.say(b"over")
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        loop.pong(TRIPS, first=True)
        times.append((time.perf_counter() - begun) / TRIPS / 2)
    return {**found, f"send {MESSAGE}": 1e6 * statistics.median(times)}
