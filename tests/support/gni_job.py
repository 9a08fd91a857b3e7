"""Ranks of a virtual world that have an emulated Gemini or Aries NIC and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ompy.engine.base import Poller
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import interfaces_for
from ompy.frameworks.nic.gni import (
    CqMode,
    Event,
    MemoryHandle,
    Ordering,
    PostDescriptor,
    PostType,
    ReturnCode,
    SmsgAttributes,
)
from ompy.net.base import Interface
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.faults.scripted import ScriptedFaults
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.simulation.virtual_job import VirtualJob
from ompy_components.nic.gni.component import GniComponent
from ompy_components.nic.gni.device import GniDevice
from ompy_components.nic.gni.generations import GENERATIONS
from ompy_components.nic.ofi_emulated.choice import chosen
from ompy_components.nic.ofi_emulated.component import EmulatedFabricComponent
from ompy_components.nic.ofi_emulated.device import EmulatedFabric

from tests.support.scripted_world import install
from tests.support.small_worlds import values_of
from tests.support.worlds import registry

SIZE = 4096
TAG, COOKIE = 7, 0xC00C1E
SECOND = 1_000_000_000  # ns
MOMENT = 100_000
FLIGHT = 20_000  # longer than any message is under way, by the device's clock


class GniRank(Poller):
    """One rank, bound to all others, with some memory they may use.

    Attributes:
        memory, handle: that memory.
        handles: of all ranks, by rank.
        queue, mailbox_queue, memory_queue: events of posts, of messages, and of what peers do.
        events: those taken from `queue`, by `poll`.
    """

    def __init__(
        self,
        context: RankContext,
        generation: str,
        ordering: Ordering,
        depth: int,
        settings: dict[str, object],
        came: dict[int, int],
        cookie: int = COOKIE,
    ) -> None:
        self.context = context
        self.came, self.round = came, 0
        self.engine = context.engine
        kind = next(known for known in GENERATIONS if known.name == generation)
        self.nic = GniDevice(context, kind, values_of(GniComponent, **settings))
        self.nic.open()
        self.domain = self.nic.domain(context.rank, TAG, cookie)
        self.queue = self.domain.completion_queue(depth)
        self.mailbox_queue = self.domain.completion_queue(depth)
        self.memory_queue = self.domain.completion_queue(depth)
        self.domain.mailbox_queue(self.mailbox_queue)
        self.memory = memoryview(bytearray(SIZE))
        self.handle = self.register(self.memory, ordering, self.memory_queue)
        self.endpoints: dict[int, Any] = {}
        self.boxes: dict[int, tuple[int, SmsgAttributes, SmsgAttributes]] = {}
        self.events: list[Event] = []
        self.handles: list[MemoryHandle] = []
        self.engine.add_poller(self)

    def register(self, memory: memoryview, *others: Any) -> MemoryHandle:
        while True:
            code, handle = self.domain.register(memory, *others)
            if code is ReturnCode.SUCCESS:
                assert handle is not None
                return handle
            assert code is ReturnCode.ERROR_RESOURCE

    def poll(self) -> int:
        code, event = self.queue.get_event()
        if event is not None:
            self.events.append(event)
        return int(code is not ReturnCode.NOT_DONE)

    def join(self, credit: int = 4, size: int = 256) -> None:
        """Meet the others: handles, endpoints, mailboxes."""
        domain, wireup, own = self.domain, self.context.wireup, self.context.rank
        box = domain.smsg_mailbox_size(credit, size)
        boxes = memoryview(bytearray(box * self.context.size))
        mailboxes = self.register(boxes)
        wireup.publish(
            "gni", repr((tuple(self.handle), tuple(mailboxes), self.nic.address)).encode()
        )
        wireup.commit()
        for rank in range(self.context.size):
            handle, theirs, address = eval(wireup.lookup(rank)["gni"].decode())
            self.handles.append(MemoryHandle(*handle))
            local = SmsgAttributes(mailboxes, rank * box, credit, size)
            remote = SmsgAttributes(MemoryHandle(*theirs), own * box, credit, size)
            self.boxes[rank] = address, local, remote
            if rank != own:
                self.connect(rank)
        wireup.fence()

    def connect(self, rank: int) -> None:
        """Make an endpoint for a peer."""
        address, local, remote = self.boxes[rank]
        endpoint = self.domain.endpoint(self.queue)
        assert endpoint.bind(address, rank) is ReturnCode.SUCCESS
        assert endpoint.smsg_init(local, remote) is ReturnCode.SUCCESS
        self.endpoints[rank] = endpoint

    def finalize(self) -> None:
        """Part: nothing is under way any more, and nothing is left."""
        self.fence()
        for endpoint in self.endpoints.values():
            self.until(endpoint.destroy, ReturnCode.ERROR_RESOURCE)
        self.engine.remove_poller(self)
        assert self.domain.destroy() is ReturnCode.SUCCESS
        self.nic.close()

    def fence(self) -> None:
        """All ranks have come here, and so has what they sent; unlike the wire-up's it polls."""
        self.round += 1
        self.came[self.round] = self.came.get(self.round, 0) + 1
        while self.came[self.round] < self.context.size:
            self.engine.wait_until(lambda: False, MOMENT)
        self.engine.wait_until(lambda: False, FLIGHT)

    def wait(self, ready: Callable[[], bool]) -> None:
        assert self.engine.wait_until(ready, 600 * SECOND)

    def take(self, queue: Any) -> Event:
        """Wait for the next event of a queue."""
        found: list[Event] = []

        def came() -> bool:
            if not found:  # a predicate may be asked again
                found.extend(event for event in [queue.get_event()[1]] if event is not None)
            return bool(found)

        self.wait(came)
        return found[0]

    def post(
        self, peer: int, type_: PostType, local: Any, at: int = 0, **more: Any
    ) -> PostDescriptor:
        """Begin a post, trying again where something has run out."""
        made = PostDescriptor(type_)
        made.local = memoryview(local)
        made.remote_address, made.remote_handle = at, self.handles[peer]
        made.cq_mode = CqMode.GLOBAL_EVENT
        for name, value in more.items():
            setattr(made, name, value)
        endpoint = self.endpoints[peer]
        rdma = type_ in (PostType.RDMA_PUT, PostType.RDMA_GET)
        begin = endpoint.post_rdma if rdma else endpoint.post_fma
        self.until(lambda: begin(made), ReturnCode.ERROR_RESOURCE)
        return made

    def until(self, call: Callable[[], ReturnCode], meanwhile: ReturnCode) -> None:
        """Call something until it is a success; as long as it is not, it says `meanwhile`."""
        codes = [meanwhile]

        def good() -> bool:
            if codes[-1] is meanwhile:  # a predicate may be asked again
                codes.append(call())
            return codes[-1] is not meanwhile

        self.wait(good)
        assert codes[-1] is ReturnCode.SUCCESS, codes[-1]

    def done(self, post: PostDescriptor) -> ReturnCode:
        """Wait until a post is done: how it ended."""
        self.wait(lambda: any(event.post is post for event in self.events))
        return next(event.status for event in self.events if event.post is post)

    def do(self, *arguments: Any, **more: Any) -> ReturnCode:
        """A post, from beginning to end."""
        return self.done(self.post(*arguments, **more))


def fabrics(context: RankContext, interfaces: Sequence[Interface]) -> Any:
    """What a rank's runtime does for it: finds the fabrics it has, at some interfaces."""

    def find(kind: type, name: str = "") -> list[EmulatedFabric]:
        values = values_of(EmulatedFabricComponent)
        return [EmulatedFabric(context, interfaces, chosen(values), values)]

    return find


def gni_world(
    programs: Sequence[Callable[[GniRank], Any]],
    *,
    seed: int = 0,
    generation: str = "gemini",
    ordering: Ordering = Ordering.RELAXED,
    depth: int = 1000,
    hosts: Sequence[int] | None = None,
    cookies: Sequence[int] = (),
    rails: Sequence[Rail] = (Rail("rail0"),),
    script: Sequence[FaultRule] = (),
    made: list[ScriptedFaults] | None = None,
    **settings: object,
) -> list[Any]:
    """Run one program per rank, of one host unless `hosts` says which; what they returned.

    With `cookies`, one for each rank, they are in different communication domains; with `script`
    their networks are disturbed, which `made` has for each rank.
    """

    def bring_up(context: RankContext, _: object) -> GniRank:
        context.find_nics = fabrics(context, interfaces_for(context))
        cookie = cookies[context.rank] if cookies else COOKIE
        return GniRank(context, generation, ordering, depth, settings, came, cookie)

    came: dict[int, int] = {}

    job = VirtualJob(
        len(programs), registry(), seed=seed, hosts=hosts, rails=rails, bring_up=bring_up
    )
    if script:
        scripts = install(job, script, seed=seed)
        made = scripts if made is None else made
        made[:] = scripts

    def run(program: Callable[[GniRank], Any]) -> Callable[[Any], Any]:
        def body(rank: GniRank) -> Any:
            rank.join()
            return program(rank)

        return body

    return job.run([run(program) for program in programs])
