"""What btl/ofi can do over a provider, found out by doing it: for tests and `ofi_matrix`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from struct import Struct

from ompy.frameworks.btl import (
    ACCESS_ANY,
    BAD_PARAM,
    GET,
    NO_ORDER,
    OUT_OF_RESOURCE,
    PUT,
    QUEUED,
    RDMA_COMPLETION,
    REMOTE_READ,
    SEND,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.btl_base.atomics import (
    WIDTH,
    AtomicOp,
    AtomicOperation,
    AtomicType,
    result_of,
    supported,
)
from ompy.frameworks.nic.fabric import MrMode
from ompy.frameworks.pml import STANDARD
from ompy.runtime.ranks.process import RankProcess
from ompy_components.btl.ofi.module import OfiModule

from tests.sim.p2p.programs import buffer, pattern, send, world

Report = dict[str, str]
AHEAD = 60  # messages; more than a receiver has buffers for
BUSY = 0.2  # s in which it reads nothing
VIRTUAL = MrMode.VIRT_ADDR | MrMode.BASIC
THEIR_KEYS = MrMode.PROV_KEY | MrMode.BASIC
ROOM = 2 << 20  # bytes of the target's memory; arbitrary
SIZES = (1, 8, 4096, 65_536, 1 << 20)
NO = "no"
NO_LIBRARY = "-"
YES = "yes"
ALL_TYPES = "all types"


def outrun(process: RankProcess) -> int:
    """Rank 0 sends more than rank 1 has buffers for, which computes; nothing is lost or stuck.

    Returns:
        Messages that arrived.
    """
    comm, pml = world(process), process.pml
    (module,) = [one for one in process.context.btls if isinstance(one, OfiModule)]
    if comm.rank == 0:
        pml.recv(comm, buffer(1)[1], 1, 0)  # now they know each other
        requests = [
            pml.isend(comm, send(pattern(200, number)), 1, 1, STANDARD) for number in range(AHEAD)
        ]
        (endpoint,) = module.endpoints.values()
        assert endpoint.window.sent <= 1 + endpoint.window.size, "more than there are buffers"
        for request in requests:
            pml.wait(comm, request)
        return 0
    pml.send(comm, send(b"."), 0, 0, STANDARD)
    time.sleep(BUSY)
    for number in range(AHEAD):
        memory, room = buffer(200)
        pml.recv(comm, room, 0, 1)
        assert memory == pattern(200, number), number
    return AHEAD


class Initiator(CompletionCallback):
    """Begins one operation after the other and waits for each."""

    def __init__(self, process: RankProcess, module: BtlModule, key: bytes) -> None:
        self.process = process
        self.module = module
        self.key = key
        (endpoint,) = module.add_procs([process.context.procs[1]])
        assert endpoint is not None
        self.endpoint = endpoint
        self._status: int | None = None

    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        assert self._status is None, "an operation was completed twice"
        self._status = status

    def move(self, get: bool, local: bytearray, at: int, key: bytes | None = None) -> int:
        call = self.module.get if get else self.module.put
        key = key or self.key
        view = memoryview(local)
        return self._wait(lambda: call(self.endpoint, view, at, None, key, 0, NO_ORDER, self, None))

    def change(self, operation: AtomicOperation) -> int:
        return self._wait(lambda: self.module.atomic(self.endpoint, operation, self, None))

    def _wait(self, begin) -> int:  # type: ignore[no-untyped-def]
        self._status = None
        engine = self.process.context.engine
        results: list[int] = []

        def begun() -> bool:
            results.append(begin())
            return results[-1] != OUT_OF_RESOURCE

        engine.wait_until(begun)
        if results[-1] != QUEUED:
            return results[-1]
        assert engine.wait_until(lambda: self._status is not None, 20_000_000_000), "no completion"
        assert self._status is not None
        return self._status


def features(process: RankProcess) -> Report:
    """What rank 0 finds; rank 1 lets it."""
    comm, pml = world(process), process.pml
    (module,) = [one for one in process.context.btls if isinstance(one, OfiModule)]
    if comm.rank == 1:
        exposed = bytearray(ROOM)
        handle = module.register_mem(None, memoryview(exposed), ACCESS_ANY)
        reading = module.register_mem(None, memoryview(exposed), REMOTE_READ)
        keys = bytes(handle) + bytes(reading)  # type: ignore[call-overload]
        pml.send(comm, send(keys), 0, 1, STANDARD)
        pml.recv(comm, buffer(1)[1], 0, 2)
        for one in (handle, reading):
            module.deregister_mem(one)
        return {}
    memory, room = buffer(2 * module.registration_handle_size)
    pml.recv(comm, room, 1, 1)
    key, reading = bytes(memory[: len(memory) // 2]), bytes(memory[len(memory) // 2 :])
    one = Initiator(process, module, key)
    report = {**_said(module), **_moved(one, reading), **dict(_changed(one))}
    pml.send(comm, send(b"."), 1, 2, STANDARD)
    return report


def _version(module: OfiModule) -> str:
    """Of the library that is there, not of the interface it was asked for; none for the twin."""
    library = getattr(module.nic, "library", None)
    return library.version_text if library is not None else NO_LIBRARY


def _said(module: OfiModule) -> Report:
    info = module.info
    armed = module.contexts.arm()
    return {
        "provider": info.provider,
        "libfabric": _version(module),
        "fragments": YES if module.flags & SEND else NO,
        "delivery complete": YES if module.flags & RDMA_COMPLETION else NO,
        "addresses": "virtual" if info.mr_mode & VIRTUAL else "offsets",
        "keys": "the provider's" if info.mr_mode & THEIR_KEYS else "ours",
        "inject": f"{info.inject_size} bytes",
        "contexts": str(info.tx_contexts_max),
        "sleeping ranks": "look now and then" if armed is None else "are woken",
    }


def _moved(one: Initiator, reading: bytes) -> Report:
    report = {"put": NO, "get": NO, "refused access": NO}
    for number, size in enumerate(SIZES):
        data = bytearray(pattern(size, number))
        if one.module.flags & PUT:
            assert one.move(False, data, 64) == 0, f"put of {size} bytes"
            report["put"] = YES
        got = bytearray(size)
        if one.module.flags & GET:
            assert one.move(True, got, 64) == 0, f"get of {size} bytes"
            report["get"] = YES
        if one.module.flags & PUT:
            assert got == data, f"{size} bytes"
    # checked here before anything is posted: some providers never say anything about it
    refused = [one.move(True, bytearray(8), ROOM)]
    if one.module.flags & PUT:
        refused.append(one.move(False, bytearray(8), 0, reading))
    if set(refused) == {BAD_PARAM}:
        report["refused access"] = YES
    return report


def _changed(one: Initiator) -> Iterator[tuple[str, str]]:
    for op in AtomicOp:
        good = [kind.name for kind in AtomicType if _works(one, op, kind)]
        every = len(good) == len(AtomicType)
        yield f"atomic {op.name}", ALL_TYPES if every else " ".join(good) or NO


def _works(one: Initiator, op: AtomicOp, kind: AtomicType) -> bool:
    """Whether it is promised; then it has to be right, with the old value and without."""
    if not supported(one.module.atomic_flags, op, kind):
        return False
    word = Struct(f"<{chr(kind)}")
    signed = kind in (AtomicType.INT32, AtomicType.INT64)
    at = 1024
    for old, operand, compare in ((6, 3, 6), (-5 if signed else 2, 1, 0), (0, 7, 1)):
        for fetch in (True, False):
            assert one.move(False, bytearray(word.pack(old)), at) == 0
            local = bytearray(WIDTH[kind]) if fetch else None
            view = memoryview(local) if local is not None else None
            asked = AtomicOperation(op, kind, operand, at, one.key, compare, view)
            assert one.change(asked) == 0, f"{op.name} {kind.name}"
            now = bytearray(word.size)
            assert one.move(True, now, at) == 0
            expected = result_of(op, kind, old, operand, compare)
            assert word.unpack(now)[0] == expected, f"{op.name} {kind.name} of {old} and {operand}"
            assert local is None or word.unpack(local)[0] == old, f"{op.name} {kind.name}: fetched"
    return True
