"""What btl/ofi has left of very many operations: for tests over every provider, in both worlds."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any, Final

from ompy.data.request import Waitable
from ompy.engine.real import RealEngine
from ompy.frameworks.btl import (
    ACCESS_ANY,
    BTL_OWNERSHIP,
    LOCAL_WRITE,
    NO_ORDER,
    OUT_OF_RESOURCE,
    QUEUED,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
    ReceiveCallback,
)
from ompy.frameworks.btl_base.atomics import AtomicOp, AtomicOperation, AtomicType
from ompy.frameworks.pml import STANDARD
from ompy.runtime.ranks.process import RankProcess
from ompy_components.btl.ofi.module import OfiModule

from tests.sim.p2p.programs import buffer, send, world
from tests.support.descriptors import descriptors
from tests.support.effort import THOROUGH

TAG: Final = 0x51  # of no framework
COUNT: Final = 10_000  # of each kind
WINDOW: Final = 8  # operations under way at once; arbitrary: fewer than a window of fragments
SIZE: Final = 64  # bytes of an operation; arbitrary
LARGE_EACH: Final = 50  # fragments; one of them is as large as may be; arbitrary
SETTLED: Final = 10_000_000  # ns of virtual time; arbitrary: what is under way is there by then
OBJECTS_MAX: Final = 1500  # blocks of Python's; arbitrary: far less than one for each operation


class End(CompletionCallback):
    """One rank's end: begins operations, and counts what ends."""

    def __init__(self, process: RankProcess, module: OfiModule, key: bytes) -> None:
        self.engine = process.context.engine
        self.module = module
        self.key = key
        (endpoint,) = module.add_procs([process.context.procs[1 - process.context.rank]])
        assert endpoint is not None
        self.endpoint = endpoint
        self.open = 0
        self.failed = self.expected = 0
        self.arrivals = Arrivals()
        process.context.active_messages.register(TAG, self.arrivals)

    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        """One has ended: what it had is given back."""
        self.open -= 1
        self.failed += bool(status)
        if descriptor.context == "free":
            module.free(descriptor)
        elif descriptor.context is not None:
            module.deregister_mem(descriptor.context)

    def begin(self, call: Callable[[], int]) -> None:
        """One more, when there is room for it."""
        self.engine.wait_until(lambda: self.open < WINDOW)
        results: list[int] = []

        def begun() -> bool:
            results.append(call())
            return results[-1] != OUT_OF_RESOURCE

        self.open += 1
        self.engine.wait_until(begun)
        assert results[-1] >= QUEUED, results[-1]

    def moves(self, call: Callable[..., int], count: int) -> None:
        """Puts or gets, each with memory registered for it; one in three is closed under way."""
        for index in range(count):
            memory = memoryview(bytearray(SIZE))
            handle = self.module.register_mem(None, memory, LOCAL_WRITE)
            kept = handle if index % 3 else None
            rest = (0, handle, self.key, 0, NO_ORDER, self, kept)
            self.begin(lambda: call(self.endpoint, memory, *rest))  # noqa: B023
            if kept is None:
                self.module.deregister_mem(handle)
        self.engine.wait_until(lambda: not self.open)

    def atomics(self, count: int) -> None:
        """Atomics: without the old value, with it, and CSWAP."""
        kinds = (AtomicOp.ADD, AtomicOp.ADD, AtomicOp.CSWAP)
        for index in range(count):
            local = memoryview(bytearray(8)) if index % 3 else None
            asked = AtomicOperation(
                kinds[index % 3], AtomicType.INT64, 1, 0, self.key, index, local
            )
            self.begin(lambda: self.module.atomic(self.endpoint, asked, self, None))  # noqa: B023
        self.engine.wait_until(lambda: not self.open)

    def fragments(self, count: int) -> None:
        """Fragments, the module's own and ours; as many come back."""
        self.expected += count
        for index in range(count):
            size = SIZE if (index + 1) % LARGE_EACH else self.module.max_send_size
            self.engine.wait_until(lambda: self._say(size, owned=bool(index % 2)))  # noqa: B023
        self.engine.wait_until(lambda: not self.open and self.arrivals.count >= self.expected)

    def _say(self, size: int, *, owned: bool) -> bool:
        flags = BTL_OWNERSHIP if owned else 0
        made = self.module.alloc(self.endpoint, NO_ORDER, size, flags)
        if made is None:
            return False
        made.callback = self
        made.context = None if owned else "free"
        self.open += 1
        result = self.module.send(self.endpoint, made, TAG)
        if result == QUEUED:
            return True
        self.open -= 1  # it is done, or was not taken: nobody is told
        if result < 0 or not owned:
            self.module.free(made)
        return result >= QUEUED


class Arrivals(ReceiveCallback):
    """Counts fragments."""

    def __init__(self) -> None:
        self.count = 0

    def received(self, module: BtlModule, endpoint: Endpoint, tag: int, data: memoryview) -> None:
        self.count += 1


def held(end: End) -> dict[str, int]:
    """What this rank has of everything."""
    gc.collect()
    module, endpoint = end.module, end.endpoint
    domain: Any = module.domain
    device: Any = module.first
    real = hasattr(domain, "opened")
    queues: list[Any] = module.contexts.queues
    slots = [len(one.contexts.free) + len(one.contexts.held) for one in queues if real]
    posted = [len(one.contexts.held) for one in queues if real]
    return {
        "registrations": len(module.memory),
        "of the device": len(domain.opened) if real else len(domain.regions),
        "regions to be closed": len(domain.closing) if real else 0,
        "slots": sum(slots),
        "posted": sum(posted) if real else device.outstanding + len(device.receives),
        "descriptors": descriptors(end.engine),
        "operations": module.transfers.outstanding + len(endpoint.operations),  # type: ignore[attr-defined]
        "fragments": module.sending.outstanding + len(endpoint.posted) + len(endpoint.kept),  # type: ignore[attr-defined]
        "objects": sys.getallocatedblocks(),
    }


def leaks(process: RankProcess) -> dict[str, int]:
    """`left_of` 10,000 operations, of each kind where the run is thorough."""
    return left_of(process, COUNT if THOROUGH else COUNT // 4)


def left_of(process: RankProcess, count: int) -> dict[str, int]:
    """What a rank has more than before; `failed`: operations that ended badly. Both tell.

    Rank 0 puts, gets and changes words of rank 1; both send fragments.
    """
    comm, pml = world(process), process.pml
    peer = 1 - comm.rank
    (module,) = [one for one in process.context.btls if isinstance(one, OfiModule)]
    exposed = bytearray(SIZE)
    handle = module.register_mem(None, memoryview(exposed), ACCESS_ANY)
    sending = pml.isend(comm, send(bytes(handle)), peer, 1, STANDARD)  # type: ignore[call-overload]
    memory, room = buffer(module.registration_handle_size)
    pml.recv(comm, room, peer, 1)
    pml.wait(comm, sending)
    end = End(process, module, bytes(memory))

    def meet() -> None:
        going = pml.isend(comm, send(b"."), peer, 2, STANDARD)
        pml.recv(comm, buffer(1)[1], peer, 2)
        pml.wait(comm, going)

    def all_kinds(each: int) -> dict[str, int]:
        if comm.rank == 0:
            end.moves(module.put, each)
            end.moves(module.get, each)
            end.atomics(each)
        meet()
        end.fragments(each)
        meet()
        kept = end.endpoint.kept  # type: ignore[attr-defined]
        end.engine.wait_until(lambda: not module.sending.outstanding and not kept)
        if isinstance(end.engine, RealEngine):
            # before and after there is what a rank has that sleeps for long
            end.engine.hub()
            assert end.engine._hub_watches(0)
            end.engine.hub().sleep(0.001)
        else:
            end.engine.wait(Waitable(), SETTLED)  # a message of the peer's module may be on its way
        return held(end)

    before = all_kinds(2 * LARGE_EACH)
    after = all_kinds(count)
    meet()
    module.deregister_mem(handle)
    more = {name: after[name] - before[name] for name in before}
    return {**more, "failed": end.failed}


def too_much(found: dict[str, int]) -> dict[str, int]:
    """Of what a rank has more than before, what it should not have."""
    allowed = {"objects": OBJECTS_MAX}
    return {name: count for name, count in found.items() if count > allowed.get(name, 0)}
