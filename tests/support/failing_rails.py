"""Rails that keep the failover obligations and fail on command, for virtual worlds of bfo.

They are `RdmaModule`s: links with a bandwidth, put, get and strict checks of registrations. A
transfer arrives first and completes afterwards, so a path that breaks in between leaves one that
arrived and failed. What a fault does to one transfer:

    lost      it does not arrive, and completes with an error when the path breaks
    error     it arrives, and completes with an error all the same
    late      it completes with an error, and arrives long afterwards
    twice     it arrives twice, and completes well; the path stays
    refused   the path breaks while it is offered: the caller gets `status`
    again     what arrives is none, by its checksum: the NIC sends it again, the path stays
    stuck     it is lost in the peer's ring (openib's eager RDMA): what comes behind it completes
              well, and is found when the peer knows that the path broke and moves along

A path that breaks does so at both ends, at the other one a moment later, or never (half open).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ompy.frameworks.btl import (
    BAD_PARAM,
    ERROR_NONFATAL,
    FAILOVER_SUPPORT,
    GET,
    NOT_AVAILABLE,
    OUT_OF_RESOURCE,
    PUT,
    QUEUED,
    UNREACHABLE,
    Descriptor,
)
from ompy.frameworks.context import RankContext
from ompy.runtime.simulation.virtual_job import VirtualJob
from ompy_components.pml.bfo.component import BfoComponent
from ompy_components.pml.bfo.headers import RESTART_NAMES
from ompy_components.pml.bfo.module import Bfo
from ompy_components.pml.ob1.headers import NAMES

from tests.support.rdma_btl import (
    RdmaModule,
    RdmaNet,
    RdmaRail,
    run_and_look_for_leaks,
)
from tests.support.small_worlds import SmallProcess, values_of

US = 1_000
TAGS = {**NAMES, **RESTART_NAMES}
WRITE, READ, SENDI = "RDMA write", "RDMA read", "MATCH via sendi"
KINDS = ("lost", "error", "late", "twice", "refused")


@dataclass(frozen=True)
class FailingRail(RdmaRail):
    """What one rail can do, beyond an `RdmaRail`. Times in ns.

    Attributes:
        sendi: it takes header and payload at once.
        notice: until a broken path is noticed.
        other_end: until the other end notices; negative for never.
        heal: after which a broken path works again; 0 for never.
        supports: it keeps the obligations.
        status: what it says of what has failed, and when it refuses something.
        severity: the flags of the error callback.
    """

    sendi: bool = False
    notice: int = 20 * US
    other_end: int = 30 * US
    heal: int = 0
    supports: bool = True
    status: int = UNREACHABLE
    severity: int = ERROR_NONFATAL


@dataclass(frozen=True)
class Fault:
    """What happens to one transfer.

    Attributes:
        what: one of `KINDS`.
        fragment: name of its header, or `WRITE`, `READ`, `SENDI`; empty for any.
        nth: of those, counting from 1, over all ranks and rails.
        delay: of `late` and `again`, ns.
        first: which end notices: `sender`, `receiver` or `both`.
        gone: the whole interface of the sender goes, not only this path.
    """

    what: str
    fragment: str = ""
    nth: int = 1
    delay: int = 400 * US
    first: str = "sender"
    gone: bool = False


def possible(what: str, name: str) -> str:
    """What a fault comes to where it cannot be: a BTL delivers once what it is given once.

    Whatever arrives twice was sent twice: ACK, PUT and FRAG never are. A read that has failed
    writes nothing any more. A put or get goes past the ring.
    """
    if what == "stuck" and name in (WRITE, READ):
        return "lost"
    if what == "twice" and name in ("ACK", "PUT", "FRAG"):
        return "error"
    return "lost" if what == "late" and name == READ else what


@dataclass
class FailingNet(RdmaNet):
    """What the modules of one world share.

    Attributes:
        plan: faults still to come.
        counts: transfers by name; the empty name counts all.
        delivered: faults that struck, by what they did.
        log: transfers in the order they were offered: name, sender, rail.
        handle: of the remote memory that a put or get named last.
        immortal: rails that no fault strikes.
        lossy: peers may be lost: then memory is given back while others use it, and a NIC says so.
    """

    plan: list[Fault] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    delivered: Counter[str] = field(default_factory=Counter)
    log: list[tuple[str, int, int]] = field(default_factory=list)
    handle: int = 0
    immortal: frozenset[int] = frozenset()
    lossy: bool = False

    def strike(self, name: str, rank: int, rail: int) -> Fault | None:
        """Count a transfer; the fault that strikes it, if there is one."""
        self.log.append((name, rank, rail))
        if rail in self.immortal:
            return None
        self.counts[name] += 1
        self.counts[""] += 1
        for fault in self.plan:
            if fault.fragment in ("", name) and fault.nth == self.counts[fault.fragment]:
                self.plan.remove(fault)
                what = possible(fault.what, name)
                self.delivered[what] += 1
                return replace(fault, what=what)
        return None


@dataclass(eq=False)
class Transfer:
    """One on its way: what it does when it arrives, and what it tells when it is done."""

    arrive: Callable[[], None]
    complete: Callable[[int], None]
    one_sided: bool = False
    done: bool = False
    dropped: bool = False


class FailingModule(RdmaModule):
    """One rail of one rank."""

    __slots__ = ("behind", "broken", "stuck", "under_way")

    def __init__(self, context: Any, net: FailingNet, index: int, rail: FailingRail) -> None:
        super().__init__(context, net, index, rail)
        self.name = f"rail{index}"
        if rail.supports:
            self.flags |= FAILOVER_SUPPORT
        self.broken: set[int] = set()
        self.under_way: dict[int, list[Transfer]] = {}
        self.stuck: set[int] = set()  # peers whose ring has a slot that nothing comes into
        self.behind: dict[int, list[Callable[[], None]]] = {}  # what lies behind one, here

    # -- paths

    def there(self, peer: int) -> FailingModule:
        return self.net.modules[peer, self.index]

    def break_path(self, peer: int, *, tell_other: bool = True) -> None:
        """The path is gone: the callback first, then what was under way."""
        if peer in self.broken:
            return
        self.broken.add(peer)
        proc = self.context.procs[peer]
        self.error_callback.failed(self, self.rail.severity, proc, "the cable was pulled")
        for transfer in self.under_way.pop(peer, []):
            transfer.dropped = True
            if not transfer.done:
                transfer.done = True
                transfer.complete(self.rail.status)
        self.stuck.discard(peer)
        self.events.extend(self.behind.pop(peer, []))
        if tell_other and self.rail.other_end >= 0:
            there = self.there(peer)
            me = self.context.rank
            self.after(there, self.rail.other_end, lambda: there.break_path(me, tell_other=False))
        if self.rail.heal:
            self.after(self, self.rail.heal, lambda: self.mend(peer))

    def noticed(self, fault: Fault, peer: int, delay: int) -> None:
        """Have the ends notice that their path is gone, in the order the fault says."""
        there, me = self.there(peer), self.context.rank
        if fault.gone:
            self.after(self, delay, self.break_all)
        elif fault.first == "sender":
            self.after(self, delay, lambda: self.break_path(peer))
        else:
            later = self.rail.notice if fault.first == "receiver" else 0
            self.after(there, delay, lambda: there.break_path(me, tell_other=False))
            self.after(self, delay + later, lambda: self.break_path(peer, tell_other=False))

    def break_all(self) -> None:
        """The interface is gone: one callback for everybody, then what was under way."""
        peers = [rank for rank in self.endpoints if rank not in self.broken]
        self.broken.update(peers)
        self.error_callback.failed(self, self.rail.severity, None, "the interface is gone")
        for peer in peers:
            self.broken.discard(peer)
            self.break_path(peer)

    def mend(self, peer: int) -> None:
        """The path works again."""
        if peer in self.broken:
            self.broken.discard(peer)
            self.error_callback.healed(self, self.context.procs[peer])

    def after(self, module: FailingModule, delay: int, work: Callable[[], None]) -> None:
        """Have a module do something in its poll."""

        def due() -> None:
            module.events.append(work)
            module.context.engine.wake()

        self.context.engine.scheduler.after(delay, due)

    # -- transfers

    def begin(
        self,
        name: str,
        endpoint: Any,
        size: int,
        arrive: Callable[[], None],
        complete: Callable[[int], None],
    ) -> bool:
        """Put a transfer on its way; false when the path broke instead."""
        peer = endpoint.proc.rank
        own = peer == self.context.rank  # the way to oneself is no cable
        fault = None if own else self.net.strike(name, self.context.rank, self.index)
        if fault is not None and fault.what == "refused":
            self.break_path(peer)
        if peer in self.broken:
            return False
        transfer = Transfer(arrive, complete, name in (WRITE, READ))
        self.under_way.setdefault(peer, []).append(transfer)
        engine = self.context.engine
        start = max(engine.now(), self.free_at.get(peer, 0))
        self.free_at[peer] = start + 1 + size * 8_000 // self.bandwidth
        delay = self.free_at[peer] - engine.now() + self.latency * US
        there = self.there(peer)
        what = fault.what if fault is not None else ""
        if what == "again" and fault is not None:
            delay += fault.delay
        if what not in ("lost", "stuck"):
            late = fault.delay if fault is not None and what == "late" else 0
            engine.scheduler.after(delay + late, partial(self.land, there, transfer, bool(late)))
        if what == "stuck":
            self.stuck.add(peer)
        if what == "twice":
            engine.scheduler.after(delay + 1, partial(self.land, there, transfer, True))
        if fault is not None and what in ("lost", "error", "late", "stuck"):
            self.noticed(fault, peer, delay + self.rail.notice)
        else:
            self.after(self, delay + self.latency * US, partial(self.finished, peer, transfer))
        return True

    def land(self, there: FailingModule, transfer: Transfer, straggler: bool) -> None:
        """At the peer's NIC: put and get need no more, a fragment is read in the next poll."""
        if transfer.dropped and not straggler:
            return
        me = self.context.rank
        if transfer.one_sided:
            transfer.arrive()
        elif there.context.rank in self.stuck and not straggler and me not in there.broken:
            there.behind.setdefault(me, []).append(transfer.arrive)
        else:
            there.events.append(transfer.arrive)
            there.context.engine.wake()

    def finished(self, peer: int, transfer: Transfer) -> None:
        if transfer.done:
            return  # it was failed
        transfer.done = True
        self.under_way[peer].remove(transfer)
        transfer.complete(0)

    def send(self, endpoint: Any, descriptor: Descriptor, tag: int) -> int:
        descriptor.tag = tag
        data = bytes(descriptor.segment) + bytes(descriptor.payload or b"")
        assert len(data) <= self.max_send_size

        def complete(status: int) -> None:
            self.out -= 1
            if descriptor.callback is not None:
                descriptor.callback.completed(self, endpoint, descriptor, status)

        self.net.moved[self.index, "send"] += descriptor.payload_size
        arrive = self.arrival(endpoint, tag, data)
        sent = self.begin(TAGS[tag], endpoint, len(data), arrive, complete)
        return QUEUED if sent else self.rail.status

    def arrival(self, endpoint: Any, tag: int, data: bytes) -> Callable[[], None]:
        there, me = self.there(endpoint.proc.rank), self.context.rank

        def arrive() -> None:
            handler = there.context.active_messages.handlers[tag]
            handler.received(there, there.endpoint_to(me), tag, memoryview(data))

        return arrive

    def sendi(self, endpoint: Any, convertor: Any, header: bytes, size: int, *others: Any) -> int:
        tag = others[-1]
        if not self.rail.sendi or self.out >= self.rail.descriptors:
            return NOT_AVAILABLE
        body = bytearray(size)
        convertor.pack(0, memoryview(body))
        data = header + bytes(body)
        proc = endpoint.proc
        self.out += 1

        def complete(status: int) -> None:
            self.out -= 1
            if status < 0:
                self.error_callback.returned(self, proc, tag, memoryview(data))

        arrive = self.arrival(endpoint, tag, data)
        if self.begin(SENDI, endpoint, len(data), arrive, complete):
            return QUEUED
        self.out -= 1
        return self.rail.status

    def put(self, endpoint: Any, *others: Any) -> int:
        refused = self.refusal(endpoint, others[3])
        return refused or super().put(endpoint, *others)

    def get(self, endpoint: Any, *others: Any) -> int:
        refused = self.refusal(endpoint, others[3])
        return refused or super().get(endpoint, *others)

    def refusal(self, endpoint: Any, remote_handle: bytes) -> int:
        """Why a put or get cannot be begun, 0 when it can."""
        if endpoint.proc.rank in self.broken:
            return self.rail.status
        gone = int.from_bytes(remote_handle, "big") not in self.net.memory
        return BAD_PARAM if self.net.lossy and gone else 0

    def _theirs(self, endpoint: Any, remote_handle: bytes, *others: Any) -> Any:
        found = super()._theirs(endpoint, remote_handle, *others)
        self.net.handle = int.from_bytes(remote_handle, "big")
        return found

    def _move(
        self,
        kind: str,
        endpoint: Any,
        local: memoryview,
        address: int,
        move: Callable[[], None],
        callback: Any,
        context: Any,
    ) -> int:
        if not self.flags & (PUT if kind == "put" else GET):
            return NOT_AVAILABLE
        limit = self.put_limit if kind == "put" else self.get_limit
        if limit and len(local) > limit:
            return NOT_AVAILABLE
        if self.out >= self.rail.descriptors:
            return OUT_OF_RESOURCE
        handle = self.net.handle
        descriptor = Descriptor(local, 0, 0)
        descriptor.context = context
        self.out += 1

        def arrive() -> None:
            if handle in self.net.memory:  # a NIC refuses what is not registered any more
                move()

        def complete(status: int) -> None:
            if status >= 0 and handle not in self.net.memory:
                assert self.net.lossy, "memory was given back under a transfer"
                status = BAD_PARAM
            self.out -= 1
            callback.completed(self, endpoint, descriptor, status)

        self.net.moved[self.index, kind] += len(local)
        name = WRITE if kind == "put" else READ
        if self.begin(name, endpoint, len(local), arrive, complete):
            return QUEUED
        self.out -= 1
        return self.rail.status


class BfoProcess(SmallProcess):
    """A rank of bfo."""

    pml_class = Bfo


def failing_world(
    programs: Sequence[Any],
    rails: Sequence[FailingRail],
    faults: Sequence[Fault] = (),
    *,
    seed: int = 0,
    trace: bool = False,
    parameters: Mapping[str, object] = {},
    process: type[SmallProcess] = BfoProcess,
    immortal: Sequence[int] = (),
    lossy: bool = False,
    strict: bool = True,
    prepare: Callable[[FailingNet, Sequence[SmallProcess]], None] | None = None,
) -> VirtualJob:
    """Run one program per rank over these rails; the job has `results`, `net`, `processes`.

    With `lossy` peers may be lost for good, and who lost one may leave what it had begun. Without
    `strict` faults may be left over, for callers that look themselves at what struck.

    Raises:
        AssertionError: a fault did not strike, or something was left behind, by ob1 or by bfo.
    """
    net = FailingNet(plan=list(faults), immortal=frozenset(immortal), lossy=lossy)
    values = values_of(BfoComponent, **parameters)
    processes: list[Any] = []

    def bring_up(context: RankContext, registry: object) -> SmallProcess:
        modules = [FailingModule(context, net, index, rail) for index, rail in enumerate(rails)]
        made = process(context, modules, values)
        places = [other.context.rank for other in processes]
        processes.insert(sum(rank < context.rank for rank in places), made)
        if prepare is not None and len(processes) == len(programs):
            prepare(net, processes)
        return made

    job = VirtualJob(len(programs), None, seed=seed, bring_up=bring_up)  # type: ignore[arg-type]
    # by rank, once all are there
    job.processes = processes  # type: ignore[attr-defined]
    if lossy:
        job.results, job.net = job.run(programs, trace=trace), net  # type: ignore[attr-defined]
    else:
        run_and_look_for_leaks(job, programs, net, processes, trace=trace)
    assert not (strict and net.plan), f"faults that never struck: {net.plan}"
    if lossy and any(made.context.rail_events and made.pml.lost for made in processes):
        return job  # who lost its peer leaves what it had begun
    for made in processes:
        pml = made.pml
        queues = [queue for matching in pml.matchings() for queue in matching.peers()]
        early = [number for queue in queues for number in queue.early]
        assert not early, f"messages that never had their turn: {early}"
        if isinstance(pml, Bfo):
            left = (pml.sending.restarts, pml.sending.dancing)
            left += (pml.receiving.restarts, pml.receiving.dancing, pml.receiving.probed)
            assert not any(left), f"left behind: {left}"
    return job
