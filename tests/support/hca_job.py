"""Ranks of a virtual world that have an emulated RDMA adapter and nothing else, agents included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ompy.engine.base import Poller
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.verbs import (
    Destination,
    Opcode,
    QueuePair,
    SendWork,
    Timing,
)
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.faults.middleware import FaultCounter
from ompy.net.faults.scripted import ScriptedFaults
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.support.hca_pair import TIMING, End, join_one
from tests.support.worlds import registry

SECOND = 1_000_000_000  # ns
KEY = "ends"


class Rank(Poller):
    """One rank with one device.

    Attributes:
        end: the device in use.
        engine: of the rank.
    """

    def __init__(self, context: RankContext, settings: dict[str, int], depth: int) -> None:
        self.context = context
        self.engine = context.engine
        self.peer = 1 - context.rank
        self.end = End(context, depth=depth, **settings)
        self.engine.add_poller(self)

    def poll(self) -> int:
        return self.end.poll()

    def arm(self) -> bool:
        return not self.end.queue.ready()

    def connect(self, count: int = 1, timing: Timing = TIMING, **more: Any) -> list[QueuePair]:
        """Queue pairs with the other rank, connected."""
        pairs = [self.end.pair(**more) for _ in range(count)]
        text = ";".join(
            ",".join(map(str, (*pair.here(), self.end.region.address, self.end.region.rkey)))
            for pair in pairs
        )
        wireup = self.context.wireup
        wireup.publish(KEY, text.encode())
        wireup.commit()
        theirs = wireup.lookup(self.peer)[KEY].decode().split(";")
        for pair, line in zip(pairs, theirs, strict=True):
            lid, number, host, port, first, address, rkey = line.split(",")
            there = Destination(int(lid), int(number), host, int(port), int(first))
            join_one(pair, there, timing)
            self.address, self.rkey = int(address), int(rkey)
        wireup.fence()
        return pairs

    def wait(self, ready: Callable[[], bool], seconds: float = 600) -> bool:
        return self.engine.wait_until(ready, round(seconds * SECOND))

    def compute(self, seconds: float) -> None:
        """Nothing is polled meanwhile."""
        self.engine.spend(round(seconds * SECOND))  # type: ignore[attr-defined]

    def remote(self, opcode: Opcode, begin: int, size: int, at: int, **more: Any) -> SendWork:
        """Work on the peer's memory."""
        more.setdefault("context", opcode.name)
        return SendWork(
            opcode,
            [self.end.span(begin, size)],
            remote_address=self.address + at,
            rkey=self.rkey,
            **more,
        )

    def finalize(self) -> None:
        self.engine.remove_poller(self)
        self.end.nic.close()


def run(
    program: Callable[[Rank], Any],
    *,
    seed: int = 0,
    faults: Callable[[RankContext, FaultCounter], Sequence[Any]] | None = None,
    rules: Sequence[FaultRule] = (),
    depth: int = 4096,
    trace: bool = False,
    parameters: dict[str, object] | None = None,
    rail: Rail | None = None,
    **settings: int,
) -> tuple[VirtualJob, FaultCounter]:
    """Run a program on two ranks of two hosts.

    Args:
        program: of each rank.
        seed: of the world.
        faults: makes the middleware of a rank.
        rules: of a fault script.
        depth: of the completion queues.
        trace: write the events.
        parameters: of the job.
        rail: the network.
        settings: parameters of the device.

    Returns:
        The job, whose `results` are those of the programs, and the faults delivered.
    """
    counter = FaultCounter()

    def bring_up(context: RankContext, _registry: Any) -> Rank:
        if rules:
            script = ScriptedFaults(
                rules,
                context.rank,
                2,
                engine=context.engine,
                network=context.network,
                trace=context.trace,
            )
            context.network.install(script)
            scripts.append(script)
        for fault in faults(context, counter) if faults else ():
            context.network.install(fault)
        return Rank(context, settings, depth)

    scripts: list[ScriptedFaults] = []
    job = VirtualJob(
        2,
        registry(**(parameters or {})),
        seed=seed,
        rails=(rail or Rail("rail0"),),
        hosts=(0, 1),
        bring_up=bring_up,
    )
    job.results = job.run(program, trace=trace)  # type: ignore[attr-defined]
    for script in scripts:
        counter.delivered["rules"] += sum(script.delivered)
    return job, counter
