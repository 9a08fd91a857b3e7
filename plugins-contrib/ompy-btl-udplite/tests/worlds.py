"""Jobs over udplite in the virtual world, whether it is installed or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ompy.data.convertor import ContiguousConvertor
from ompy.data.request import Request
from ompy.frameworks.catalog import CATALOG
from ompy.frameworks.context import RankContext
from ompy.frameworks.pml import STANDARD
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.plugins.component_records import ComponentRecord
from ompy.mca.plugins.discovery import scan_entry_points
from ompy.mca.registry import Registry
from ompy.net.base import Middleware
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

from ompy_btl_udplite.component import COMPONENT

Program = Callable[[RankProcess], Any]
MS = 1_000_000
SECOND = 1_000 * MS
TIME_MAX = 300 * SECOND  # several times what any test takes
TARGET = "ompy_btl_udplite.component:COMPONENT"


def registry(**settings: object) -> Registry:
    """What comes with ompy, and udplite; nothing from files or the environment."""
    found = scan_entry_points(frozenset(framework.name for framework in CATALOG))
    records = [record for record in found if record.in_tree]
    records.append(ComponentRecord("btl", "udplite", "ompy-btl-udplite", "0", TARGET))
    pairs = [(name, str(value)) for name, value in settings.items()]
    return Registry(CATALOG, gather_settings(pairs, {}, files=[]), records)


def job(
    ranks: int,
    *,
    seed: int = 0,
    faults: Callable[[RankContext], Sequence[Middleware]] = lambda _: (),
    hosts: Sequence[int] | None = None,
    bounded: bool = True,
    **settings: object,
) -> VirtualJob:
    """A job over `self,udplite`, or what `settings` say; each rank sends through its faults.

    A bounded one is not seen to hang, but fails after `TIME_MAX`.
    """

    def bring_up(context: RankContext, using: Registry) -> RankProcess:
        for fault in faults(context):
            context.network.install(fault)
        return RankProcess(context, using)

    using = registry(**{"btl": "self,udplite", **settings})
    made = VirtualJob(ranks, using, seed=seed, hosts=hosts, bring_up=bring_up)
    if bounded:
        made.scheduler.after(TIME_MAX, _too_long)
    return made


def _too_long() -> None:
    raise AssertionError(f"not over after {TIME_MAX // SECOND} s of virtual time")


class Talk:
    """Messages of one rank."""

    def __init__(self, process: RankProcess) -> None:
        self.process = process
        self.engine = process.context.engine
        self.comm = process.communicator(0, process.context.procs, "WORLD")

    def send(self, data: bytes, target: int, tag: int = 0) -> Request:
        """Begin to send."""
        convertor = ContiguousConvertor(memoryview(data))
        return self.process.pml.isend(self.comm, convertor, target, tag, STANDARD)

    def receive(self, size: int, source: int, tag: int = 0) -> bytes:
        """Receive one message."""
        memory = bytearray(size)
        room = ContiguousConvertor(memoryview(memory))
        done = self.process.pml.wait(
            self.comm, self.process.pml.irecv(self.comm, room, source, tag)
        )
        return bytes(memory[: done.received])

    def wait(self, *requests: Request) -> None:
        """Wait for requests."""
        for request in requests:
            self.process.pml.wait(self.comm, request)

    def module(self) -> Any:
        """The rank's udplite module."""
        return next(m for m in self.process.context.btls if m.name == COMPONENT.name)


def pattern(size: int, salt: int) -> bytes:
    """Bytes that differ by position and salt."""
    block = bytes((salt + index * 7) % 251 for index in range(4099))
    return (block * (size // len(block) + 1))[:size]
