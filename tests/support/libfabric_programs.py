"""Programs of two real ranks with libfabric's providers; names go over the PML."""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from ompy.frameworks.nic.fabric import AtomicCall, Datatype, FabricNic, Op
from ompy.frameworks.pml import STANDARD
from ompy.runtime.ranks.process import RankProcess
from ompy_components.nic.libfabric.completions import LibfabricQueue
from ompy_components.nic.libfabric.domain import LibfabricDomain

from tests.sim.p2p.programs import buffer, ring, send, world
from tests.support.descriptors import descriptors
from tests.support.effort import THOROUGH, effort
from tests.support.fabric_checks import CHECKS
from tests.support.fabric_programs import ALL, PROGRAMS, Side, best, compare_and_swap, one_atomic

BATCH = 25  # operations under way together
PROVIDERS = ("tcp;ofi_rxm", "shm", "sockets", "udp;ofi_rxd")
CHECKED = PROVIDERS if THOROUGH else PROVIDERS[:2]  # those a stranger can end are for the night


class Pair:
    """One of two ranks: the component's device, and a way to tell the other something."""

    def __init__(self, process: RankProcess) -> None:
        self.process = process
        self.comm = world(process)
        self.engine = process.context.engine
        (self.nic,) = process.context.find_nics(FabricNic, "libfabric")
        self.nic.open()

    def swap(self, said: bytes) -> bytes:
        """Tell the peer something, and hear what it says."""
        pml, peer = self.process.pml, 1 - self.comm.rank
        memory, room = buffer(4096)
        receive = pml.irecv(self.comm, room, peer, 1)
        request = pml.isend(self.comm, send(said), peer, 1, STANDARD)
        pml.wait(self.comm, receive)
        pml.wait(self.comm, request)
        return bytes(memory[: receive.length])

    def side(self, provider: str, **more: Any) -> Side:
        """An endpoint over a provider, that knows the peer's."""
        info = best(self.nic, provider)
        return Side(self.engine, self.comm.rank, self.nic, info, self.swap, seconds=100, **more)

    def done(self, side: Side) -> None:
        """Close, when both have come to an end."""
        self.swap(b"the end")
        side.close()


def some_atomics(side: Side) -> None:
    """A tenth of what `atomics` tries: each takes three round trips, and cores are shared."""
    side.meet()
    if side.rank == 0:
        for datatype in (Datatype.UINT64, Datatype.INT32):
            for op in (Op.SUM, Op.MIN, Op.BXOR):
                for call in (AtomicCall.ATOMIC, AtomicCall.FETCH):
                    assert side.endpoint.atomic_valid(call, datatype, op)
                    one_atomic(side, call, datatype, op)
            assert side.endpoint.atomic_valid(AtomicCall.COMPARE, datatype, Op.CSWAP)
            compare_and_swap(side, datatype)
    side.meet()


def programs() -> dict[str, Callable[[Side], None]]:
    """What is run over each provider."""
    return PROGRAMS if THOROUGH else {**PROGRAMS, "atomics": some_atomics}


def all_programs(process: RankProcess) -> list[list[str]]:
    """What runs over the emulated device in virtual worlds, over each provider."""
    pair = Pair(process)
    ran = []
    for provider in PROVIDERS:
        for name, program in programs().items():
            side = pair.side(provider)
            program(side)
            pair.done(side)
            ran.append([provider, name])
    return ran


def all_checks(process: RankProcess) -> list[list[str]]:
    """What libfabric's functional tests look at, over each provider that is checked."""
    pair = Pair(process)
    ran = []
    for provider in CHECKED:
        for name, check in CHECKS.items():
            side = pair.side(provider)
            check(side)
            pair.done(side)
            ran.append([provider, name])
    return ran


def leaks(process: RankProcess, provider: str, count: int) -> list[object]:
    """Many operations, each from memory that is registered for it; what is open afterwards.

    Returns:
        What a rank has more than before: descriptors, slots of contexts, and objects of libfabric;
        and what is kept alive. Rank 1 does nothing but serve.
    """
    pair = Pair(process)
    side = pair.side(provider)
    queue = side.queue
    assert isinstance(queue, LibfabricQueue)
    domain = side.domain
    assert isinstance(domain, LibfabricDomain)

    def some(number: int) -> None:
        for begin in range(0, number, BATCH):
            regions = []
            for index in range(BATCH):
                memory = memoryview(bytearray(64))
                region = domain.register(memory, ALL, 100_000 + index)
                regions.append(region)
                call = side.endpoint.read if index % 2 else side.endpoint.write
                side.post(
                    partial(
                        call, memory, region.descriptor, side.to, side.there.base, side.there.key,
                        begin + index,
                    )
                )  # fmt: skip
                if index % 3 == 0:
                    region.close()  # under work that may be under way
            for index in range(BATCH):
                side.good(begin + index)
            for region in regions:
                region.close()

    def here() -> list[int]:
        gc.collect()
        slots = len(queue.contexts.free) + len(queue.contexts.held)
        return [descriptors(pair.engine), slots, len(domain.opened)]

    side.meet()
    if side.rank == 0:
        some(4 * BATCH)
        before = here()
        some(count)
        after = here()
        kept: list[object] = [b - a for a, b in zip(before, after, strict=True)]
        kept.append(len(queue.contexts.held))
    else:
        kept = []
    side.meet()
    pair.done(side)
    return kept


def all_leaks(process: RankProcess) -> list[list[object]]:
    """`leaks` over each provider, 10,000 operations in all."""
    count = effort(10_000 // len(PROVIDERS))
    return [[provider, *leaks(process, provider, count)] for provider in PROVIDERS]


def foreign(process: RankProcess) -> int:
    """What a stranger sends to usnic's queue pairs is refused, and the job goes on.

    Returns:
        Packets this rank has refused.
    """
    ring(process)
    (module,) = (one for one in process.context.btls if one.name == "usnic")
    channels: Any = module._channels  # type: ignore[attr-defined]
    seal = module._seal  # type: ignore[attr-defined]
    before = seal.refused
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for channel in channels:
            for size in (0, 1, 16, 41, 400, 768):
                stranger.sendto(os.urandom(size), tuple(channel.address))
    assert process.context.engine.wait_until(lambda: seal.refused > before, 20 * 10**9)
    ring(process)
    return int(seal.refused)
