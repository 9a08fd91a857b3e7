"""Ranks of a virtual world that put and get by the conduits' RDMA engine, and do nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from ompy.engine.base import Poller
from ompy.frameworks.conduit import SegmentInfo, Transfer
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import interfaces_for
from ompy.frameworks.nic.gni import MemoryHandle, ReturnCode
from ompy.net.memory.kernel_copy import address_of
from ompy.runtime.simulation.virtual_job import VirtualJob
from ompy_components.conduit.gni.parameters import ordering
from ompy_components.conduit.gni.rdma.engine import RdmaEngine
from ompy_components.conduit.gni.resources import Resources
from ompy_components.nic.gni.component import GniComponent
from ompy_components.nic.gni.device import GniDevice
from ompy_components.nic.gni.generations import GENERATIONS

from tests.support.conduit_parameters import values
from tests.support.gni_job import fabrics
from tests.support.small_worlds import values_of

TAG, COOKIE = 7, 0xC00C1E
SECOND = 1_000_000_000  # ns
MOMENT = 1_000


class Count(Transfer):
    """Counts what is done.

    Attributes:
        gets, puts: that are done.
    """

    def __init__(self) -> None:
        self.gets = self.puts = 0

    def done(self, *, is_get: bool) -> None:
        self.gets += is_get
        self.puts += not is_get


class RdmaRank(Poller):
    """One rank.

    Attributes:
        engine: its puts and gets.
        resources: what these use.
        segment: the own one.
        outside: memory outside of it, not registered, of the same size.
        world: all ranks, by rank, to look into.
    """

    def __init__(
        self,
        context: RankContext,
        generation: str,
        size: int,
        settings: dict[str, object],
        device: dict[str, object],
        came: dict[int, int],
        world: dict[int, RdmaRank],
    ) -> None:
        self.context = context
        self.world = world
        world[context.rank] = self
        self._came, self._round = came, 0
        kind = next(known for known in GENERATIONS if known.name == generation)
        nic = GniDevice(context, kind, values_of(GniComponent, **device))
        nic.open()
        domain = nic.domain(context.rank, TAG, COOKIE)
        parameters = values(generation, **settings)
        self.resources = Resources(
            context, nic, domain, parameters, nullcontext(), self.let_time_pass, "conduit"
        )
        self.resources.local_queue = domain.completion_queue(RdmaEngine.queue_depth(parameters))
        auxiliary = RdmaEngine.auxiliary_size(parameters)
        self.memory = memoryview(bytearray(size + auxiliary))
        self.outside = memoryview(bytearray(size))
        self.segment = self.resources.segment = self.memory[:size]
        self.resources.auxiliary = self.memory[size:]
        handle = None
        while handle is None:
            _, handle = domain.register(self.memory, ordering(parameters))
        self.handle = self.resources.segment_handle = self.resources.auxiliary_handle = handle

    def let_time_pass(self) -> None:
        self.context.engine.wait_until(lambda: False, MOMENT)

    def join(self) -> None:
        """Meet the others."""
        resources, wireup = self.resources, self.context.wireup
        own = SegmentInfo(address_of(self.segment), len(self.segment))
        wireup.publish(
            "rdma", repr((tuple(self.handle), tuple(own), resources.nic.address)).encode()
        )
        wireup.commit()
        for rank in range(self.context.size):
            handle, segment, address = eval(wireup.lookup(rank)["rdma"].decode())
            resources.handles[rank] = MemoryHandle(*handle)
            resources.segments.append(SegmentInfo(*segment))
            if rank != self.context.rank:
                endpoint = resources.domain.endpoint(resources.local_queue)
                assert endpoint.bind(address, rank) is ReturnCode.SUCCESS
                resources.endpoints[rank] = endpoint
        self.engine = RdmaEngine(resources)
        self.context.engine.add_poller(self)
        wireup.fence()

    def poll(self) -> int:
        return self.engine.poll_local()

    def arm(self) -> bool:
        return not self.resources.local_queue.ready()

    def wait(self, ready: Callable[[], bool]) -> None:
        assert self.context.engine.wait_until(ready, 600 * SECOND)

    def fence(self) -> None:
        """All ranks have come here; unlike the wire-up's this one polls."""
        self._round += 1
        self._came[self._round] = self._came.get(self._round, 0) + 1
        while self._came[self._round] < self.context.size:
            self.let_time_pass()

    def put(self, node: int, offset: int, local: memoryview, *, bulk: bool = True) -> None:
        """Put, and wait for it."""
        count = Count()
        self.engine.put(node, offset, local, count, bulk=bulk)
        self.wait(lambda: count.puts == 1)

    def get(self, node: int, offset: int, local: memoryview) -> None:
        """Get, and wait for it."""
        count = Count()
        self.engine.get(node, offset, local, count)
        self.wait(lambda: count.gets == 1)

    def finalize(self) -> None:
        """Part: nothing is under way any more, and nothing is left."""
        self.fence()
        engine, resources = self.engine, self.resources
        engine.close()
        assert not engine.under_way
        assert len(engine._bounce) == engine._bounce.count
        assert not engine._registrations.held
        assert len(resources.domain.memory) == 1  # type: ignore[attr-defined]
        for endpoint in resources.endpoints:
            assert endpoint is None or endpoint.destroy() is ReturnCode.SUCCESS
        self.context.engine.remove_poller(self)
        assert resources.domain.destroy() is ReturnCode.SUCCESS
        resources.nic.close()


def rdma_world(
    programs: Sequence[Callable[[RdmaRank], Any]],
    *,
    seed: int = 0,
    generation: str = "gemini",
    size: int = 1 << 16,
    hosts: Sequence[int] | None = None,
    device: dict[str, object] | None = None,
    **settings: object,
) -> list[Any]:
    """Run one program per rank.

    Args:
        programs: by rank.
        seed: of the world.
        generation: of the NIC.
        size: of each segment.
        hosts: of each rank; all on one unless it is given.
        device: the NIC's parameters.
        settings: the conduit's.

    Returns:
        What the programs returned.
    """
    came: dict[int, int] = {}
    world: dict[int, RdmaRank] = {}

    def bring_up(context: RankContext, _: object) -> RdmaRank:
        context.find_nics = fabrics(context, interfaces_for(context))
        return RdmaRank(context, generation, size, settings, device or {}, came, world)

    job = VirtualJob(len(programs), None, seed=seed, hosts=hosts, bring_up=bring_up)  # type: ignore[arg-type]

    def run(program: Callable[[RdmaRank], Any]) -> Callable[[Any], Any]:
        def body(rank: RdmaRank) -> Any:
            rank.join()
            return program(rank)

        return body

    return job.run([run(program) for program in programs])
