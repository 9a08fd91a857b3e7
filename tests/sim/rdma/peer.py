"""One rank's BTL without a PML: registers memory, puts, gets and sends, and counts completions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ompy.frameworks.btl import (
    BTL_OWNERSHIP,
    COMPLETED,
    NO_ORDER,
    OUT_OF_RESOURCE,
    QUEUED,
    REMOTE_READ,
    REMOTE_WRITE,
    SEND_ALWAYS_CALLBACK,
    BtlComponent,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
    ErrorCallback,
    ReceiveCallback,
)
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc
from ompy.mca.registry import Registry
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.support.worlds import registry

TAG = 0xF0
PATIENCE = 20 * 10**9


class Transfer:
    """A put or get: what the call said, and every completion."""

    def __init__(self, local: Any) -> None:
        self.local = local
        self.result = OUT_OF_RESOURCE
        self.statuses: list[int] = []

    @property
    def done(self) -> bool:
        return self.result != QUEUED or bool(self.statuses)

    @property
    def good(self) -> bool:
        return self.result == COMPLETED or self.statuses == [0]


class Arrivals(ReceiveCallback):
    """What came, by rank. (Compiled bases do not mix: one class for each kind of callback.)"""

    def __init__(self, size: int) -> None:
        self.inbox: dict[int, list[bytes]] = {rank: [] for rank in range(size)}

    def received(self, module: BtlModule, endpoint: Endpoint, tag: int, data: memoryview) -> None:
        self.inbox[endpoint.proc.rank].append(bytes(data))


class Errors(ErrorCallback):
    """Notes errors in a log."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def failed(self, module: BtlModule, flags: int, proc: Proc | None, reason: str) -> None:
        self.log.append("error")


class Peer(CompletionCallback):
    """A rank with the modules of one BTL; `inbox` has what came, `log` the order of events."""

    def __init__(self, context: RankContext, modules: list[BtlModule]) -> None:
        self.context = context
        self.module = modules[0]
        arrivals = Arrivals(context.size)
        self.inbox = arrivals.inbox
        self.log: list[str] = []
        self.transfers: list[Transfer] = []
        context.active_messages.register(TAG, arrivals)
        if context.pml_name == "none":  # else the errors are the PML's
            for module in modules:
                module.register_error(Errors(self.log))

    # -- callbacks

    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        transfer = descriptor.context
        assert isinstance(transfer, Transfer)
        assert descriptor.segment is transfer.local or len(descriptor.segment) == len(
            transfer.local
        )
        assert module is self.module
        assert not transfer.statuses, "completed twice"
        transfer.statuses.append(status)
        self.log.append(f"completed {status}")

    # -- what tests do

    @property
    def others(self) -> list[int]:
        return [rank for rank in range(self.context.size) if rank != self.context.rank]

    def wait(self, holds: Callable[[], bool]) -> None:
        assert self.context.engine.wait_until(holds, PATIENCE), "late"

    def endpoint(self, rank: int) -> Endpoint:
        found = self.module.add_procs([self.context.procs[rank]])[0]
        assert found is not None
        return found

    def tell(self, rank: int, data: bytes) -> None:
        def out() -> bool:
            endpoint = self.endpoint(rank)
            made = self.module.alloc(endpoint, NO_ORDER, len(data), BTL_OWNERSHIP)
            if made is None:
                return False
            made.segment[:] = data
            return self.module.send(endpoint, made, TAG) >= 0

        self.wait(out)

    def hear(self, rank: int) -> bytes:
        self.wait(lambda: bool(self.inbox[rank]))
        return self.inbox[rank].pop(0)

    def meet(self) -> None:
        for rank in self.others:
            self.tell(rank, b"met")
        for rank in self.others:
            assert self.hear(rank) == b"met"

    def swap(self, handle: object) -> dict[int, bytes]:
        """Everybody's handles, by rank."""
        mine = bytes(handle)  # type: ignore[call-overload]
        assert len(mine) == self.module.registration_handle_size
        for rank in self.others:
            self.tell(rank, mine)
        return {rank: self.hear(rank) for rank in self.others} | {self.context.rank: mine}

    def expose(self, memory: bytearray | memoryview, access: int = -1) -> object:
        flags = REMOTE_READ | REMOTE_WRITE if access < 0 else access
        return self.module.register_mem(None, memoryview(memory), flags)

    def start(
        self, how: str, rank: int, local: Any, offset: int, handle: bytes, flags: int = 0
    ) -> Transfer:
        """Begin a put or get; one that got no resources is tried again."""
        transfer = Transfer(local)
        move = self.module.put if how == "put" else self.module.get
        view = memoryview(local)

        def accepted() -> bool:
            transfer.result = move(
                self.endpoint(rank), view, offset, None, handle, flags, NO_ORDER, self, transfer
            )
            return transfer.result != OUT_OF_RESOURCE

        self.wait(accepted)
        if transfer.result < 0 or transfer.result == COMPLETED:
            due = bool(flags & SEND_ALWAYS_CALLBACK) and transfer.result == COMPLETED
            assert len(transfer.statuses) == due
        self.transfers.append(transfer)
        return transfer

    def finish(self, *transfers: Transfer) -> None:
        self.wait(lambda: all(transfer.done for transfer in transfers))

    def finalize(self) -> None:
        for module in self.context.btls:
            module.finalize()
        for module in self.context.btls:
            self.context.engine.remove_poller(module)


def opener(name: str) -> Callable[[RankContext, Registry], Peer]:
    def bring_up(context: RankContext, made: Registry) -> Peer:
        context.pml_name = "none"
        for component in made.open("btl"):
            assert isinstance(component, BtlComponent)
            context.btls += component.init(context)
        context.wireup.publish("pml", b"none")
        context.wireup.commit()
        for module in context.btls:
            context.engine.add_poller(module)
        return Peer(context, [module for module in context.btls if module.name == name])

    return bring_up


def run(
    name: str,
    program: Callable[[Peer], Any],
    *,
    ranks: int = 2,
    seed: int = 0,
    rails: tuple[Rail, ...] = (Rail("rail0"),),
    trace: bool = False,
    **settings: object,
) -> VirtualJob:
    """Run a program on every rank of a virtual world that has one BTL; `job.results`."""
    made = registry(btl=name, **settings)
    job = VirtualJob(ranks, made, seed=seed, rails=rails, bring_up=opener(name))
    job.results = job.run(program, trace=trace)  # type: ignore[attr-defined]
    return job
