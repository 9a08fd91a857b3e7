"""A BTL with put and get for virtual worlds, whose capabilities and faults a test chooses.

Each rail is a link of its own between every two ranks, with a bandwidth that is kept. All of
it runs on the world's clock and chance. It checks what a real NIC would not forgive: a
registration that is unknown, gone, of another rail or for another purpose, and bytes beyond it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ompy.frameworks.btl import (
    COMPLETED,
    ERROR_FATAL,
    GET,
    LOCAL_WRITE,
    NOT_AVAILABLE,
    OUT_OF_RESOURCE,
    PUT,
    QUEUED,
    REMOTE_READ,
    REMOTE_WRITE,
    SEND,
    SEND_INPLACE,
    UNREACHABLE,
    BtlModule,
    Descriptor,
    Endpoint,
)
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.support.worlds import registry

REFUSED = -13  # any negative result that is neither OUT_OF_RESOURCE nor NOT_AVAILABLE


@dataclass(frozen=True)
class RdmaRail:
    """What one rail can do. Sizes in bytes, bandwidth in Mbit/s, latency in us.

    `refuse` and `fail` name operations (`put`, `get`) that are refused when they are asked for,
    or complete badly; `odds` says how often.
    """

    flags: int = PUT | GET
    bandwidth: int = 1000
    latency: int = 1
    eager_limit: int = 1024
    rndv_eager_limit: int = 512
    max_send_size: int = 2048
    pipeline_send_length: int = 4000
    pipeline_frag_size: int = 8000
    min_rdma_pipeline_size: int = 20_000
    put_limit: int = 0
    get_limit: int = 0
    alignment: int = 1
    descriptors: int = 1000
    registrations: int = 1000
    inplace: bool = True
    inline: bool = False  # put and get are complete when they return
    refuse: frozenset[str] = frozenset()
    refuse_with: int = REFUSED
    fail: frozenset[str] = frozenset()
    odds: float = 1.0


@dataclass
class RdmaNet:
    """What the modules of one world share."""

    modules: dict[tuple[int, int], RdmaModule] = field(default_factory=dict)
    memory: dict[int, tuple[int, int, memoryview, int]] = field(default_factory=dict)
    handles: int = 0
    moved: Counter[tuple[int, str]] = field(default_factory=Counter)  # bytes by rail and operation
    faults: Counter[str] = field(default_factory=Counter)


class Handle:
    """A registration."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __bytes__(self) -> bytes:
        return self.number.to_bytes(8, "big")


class RdmaModule(BtlModule):
    """One rail of one rank."""

    __slots__ = (
        "dead",
        "endpoints",
        "events",
        "free_at",
        "index",
        "net",
        "out",
        "rail",
        "registered",
    )

    def __init__(self, context: Any, net: RdmaNet, index: int, rail: RdmaRail) -> None:
        super().__init__("rdma", context)
        for name in ("eager_limit", "rndv_eager_limit", "max_send_size", "min_rdma_pipeline_size"):
            setattr(self, name, getattr(rail, name))
        self.bandwidth, self.latency = rail.bandwidth, rail.latency
        self.rdma_pipeline_send_length = rail.pipeline_send_length
        self.rdma_pipeline_frag_size = rail.pipeline_frag_size
        self.put_limit, self.get_limit = rail.put_limit, rail.get_limit
        self.put_alignment = self.get_alignment = rail.alignment
        self.flags = SEND | rail.flags | (SEND_INPLACE if rail.inplace else 0)
        self.registration_handle_size = 8
        self.net, self.index, self.rail = net, index, rail
        self.endpoints: dict[int, Endpoint] = {}
        self.events: deque[Callable[[], None]] = deque()
        self.free_at: dict[int, int] = {}
        self.out = self.registered = 0
        self.dead = False
        net.modules[context.rank, index] = self

    def add_procs(self, procs):
        for proc in procs:
            self.context.modex(proc)  # its modules are there when it has published
        return [self.endpoints.setdefault(proc.rank, Endpoint(self, proc)) for proc in procs]

    def cut(self, proc):
        """The path to a peer is gone, at both ends: tell this PML, then fail what is under way."""
        self.dead = self.net.modules[proc.rank, self.index].dead = True
        self.error_callback.failed(self, ERROR_FATAL, proc, "the cable was pulled")

    # -- fragments

    def alloc(self, endpoint, order, size, flags):
        assert size <= self.max_send_size
        if self.out >= self.rail.descriptors:
            self.net.faults["no room to send"] += 1
            return None
        self.out += 1
        return Descriptor(memoryview(bytearray(size)), flags, order)

    def free(self, descriptor):
        self.out -= 1

    def prepare_src(self, endpoint, convertor, offset, order, reserve, size, flags):
        size = min(size, convertor.size - offset, self.max_send_size - reserve)
        inplace = self.rail.inplace and convertor.view is not None
        descriptor = self.alloc(endpoint, order, reserve if inplace else reserve + size, flags)
        if descriptor is None:
            return None
        descriptor.payload_size = size
        if inplace:
            descriptor.payload = convertor.view[offset : offset + size]
        else:
            convertor.pack(offset, descriptor.segment[reserve:])
        return descriptor

    def send(self, endpoint, descriptor, tag):
        descriptor.tag = tag
        if self.dead:
            return UNREACHABLE
        data = bytes(descriptor.segment) + bytes(descriptor.payload or b"")
        assert len(data) <= self.max_send_size
        there = self.net.modules[endpoint.proc.rank, self.index]
        me = self.context.rank

        def arrive() -> None:
            if there.dead:
                return
            handler = there.context.active_messages.handlers[tag]
            handler.received(there, there.endpoint_to(me), tag, memoryview(data))

        def done() -> None:
            self.out -= 1
            if descriptor.callback is not None:
                status = UNREACHABLE if self.dead else 0
                descriptor.callback.completed(self, endpoint, descriptor, status)

        self.net.moved[self.index, "send"] += descriptor.payload_size
        self._schedule(endpoint, len(data), there, arrive, done)
        return QUEUED

    def endpoint_to(self, rank):
        return self.endpoints.setdefault(rank, Endpoint(self, self.context.procs[rank]))

    def _schedule(self, endpoint, size, there, arrive, done):
        """Let a transfer take its place on the link, in order behind those before it."""
        engine = self.context.engine
        peer = endpoint.proc.rank
        begin = max(engine.now(), self.free_at.get(peer, 0))
        end = begin + 1 + size * 8_000 // self.bandwidth
        self.free_at[peer] = end
        delay = end - engine.now()

        def landed() -> None:
            there.events.append(arrive)
            there.context.engine.wake()

        def left() -> None:
            self.events.append(done)
            engine.wake()

        engine.scheduler.after(delay + self.latency * 1000, landed if arrive else left)
        if arrive:
            engine.scheduler.after(delay, left)

    # -- remote memory

    def path(self, endpoint):
        return str(self.index).encode()

    def register_mem(self, endpoint, memory, flags):
        if self.registered >= self.rail.registrations:
            self.net.faults["no room to register"] += 1
            return None
        self.registered += 1
        self.net.handles += 1
        self.net.memory[self.net.handles] = (self.context.rank, self.index, memory, flags)
        return Handle(self.net.handles)

    def deregister_mem(self, handle):
        self.registered -= 1
        del self.net.memory[handle.number]

    def put(self, endpoint, local, address, handle, remote_handle, flags, order, callback, context):
        if self.dead:
            return UNREACHABLE
        mine = self._mine(handle, local)
        assert mine & REMOTE_READ
        target = self._theirs(endpoint, remote_handle, address, len(local), REMOTE_WRITE)

        def move() -> None:
            target[:] = local

        return self._move("put", endpoint, local, address, move, callback, context)

    def get(self, endpoint, local, address, handle, remote_handle, flags, order, callback, context):
        if self.dead:
            return UNREACHABLE
        mine = self._mine(handle, local)
        assert mine & LOCAL_WRITE
        source = self._theirs(endpoint, remote_handle, address, len(local), REMOTE_READ)

        def move() -> None:
            local[:] = source

        return self._move("get", endpoint, local, address, move, callback, context)

    def _mine(self, handle, local):
        rank, index, memory, flags = self.net.memory[handle.number]
        assert (rank, index) == (self.context.rank, self.index)
        assert memory.obj is local.obj
        return flags

    def _theirs(self, endpoint, remote_handle, address, size, need):
        number = int.from_bytes(remote_handle, "big")
        rank, index, memory, flags = self.net.memory[number]
        assert (rank, index) == (endpoint.proc.rank, self.index), "a handle of another rail"
        assert flags & need
        assert address + size <= len(memory)
        return memory[address : address + size]

    def _move(self, kind, endpoint, local, address, move, callback, context):
        rail, random = self.rail, self.context.engine.random
        size = len(local)
        limit = self.put_limit if kind == "put" else self.get_limit
        if not self.flags & (PUT if kind == "put" else GET):
            return NOT_AVAILABLE
        if (limit and size > limit) or (address | size) % rail.alignment:
            self.net.faults["limits"] += 1
            return NOT_AVAILABLE
        if kind in rail.refuse and random.random() < rail.odds:
            self.net.faults["refused"] += 1
            return rail.refuse_with
        if self.out >= rail.descriptors:
            self.net.faults[f"no room to {kind}"] += 1
            return OUT_OF_RESOURCE
        status = -1 if kind in rail.fail and random.random() < rail.odds else 0
        self.net.faults["failed"] -= status
        if rail.inline and not status:
            move()
            self.net.moved[self.index, kind] += size
            return COMPLETED
        descriptor = Descriptor(local, 0, 0)
        descriptor.context = context
        self.out += 1

        def done() -> None:
            self.out -= 1
            if not status and not self.dead:
                move()
                self.net.moved[self.index, kind] += size
            result = UNREACHABLE if self.dead else status
            callback.completed(self, endpoint, descriptor, result)

        self._schedule(endpoint, size, self, None, done)
        return QUEUED

    # -- life

    def poll(self):
        if not self.events:
            return 0
        count = len(self.events)
        for _ in range(count):
            self.events.popleft()()
        return count

    def arm(self):
        return not self.events

    def finalize(self):
        self.context.engine.wait_until(lambda: self.out == 0 and not self.events)


class RdmaProcess(RankProcess):
    """A rank whose only BTL is this one."""

    net: RdmaNet
    rails: Sequence[RdmaRail]
    module: type[RdmaModule]

    def _open_btls(self) -> None:
        self.context.btls += [
            self.module(self.context, self.net, index, rail)
            for index, rail in enumerate(self.rails)
        ]


def rdma_world(
    ranks: int,
    programs: Any,
    rails: Sequence[RdmaRail] = (RdmaRail(),),
    *,
    seed: int = 0,
    trace: bool = False,
    module: type[RdmaModule] = RdmaModule,
    **settings: object,
) -> VirtualJob:
    """Run programs over these rails; the job has `results` and `net`. Nothing may leak."""
    net = RdmaNet()
    processes: list[RdmaProcess] = []

    def bring_up(context, registry_):
        kind = type("Process", (RdmaProcess,), {"net": net, "rails": rails, "module": module})
        processes.append(kind(context, registry_))
        return processes[-1]

    job = VirtualJob(ranks, registry(btl="self", **settings), seed=seed, bring_up=bring_up)
    return run_and_look_for_leaks(job, programs, net, processes, trace=trace)


def run_and_look_for_leaks(
    job: VirtualJob, programs: Any, net: RdmaNet, processes: Sequence[Any], *, trace: bool = False
) -> VirtualJob:
    """Run a world to its end. The job gets `results` and `net`; nothing may be left behind."""
    job.results = job.run(programs, trace=trace)
    job.net = net
    assert not net.memory, "registrations were left behind"
    for process in processes:
        pml = process.pml
        assert len(pml.rdma) == 0, "FINs are still expected"
        assert len(pml.pending) == 0, "something still waits for room"
        assert not pml.sending.requests
        assert not pml.receiving.requests
    return job
