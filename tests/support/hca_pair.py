"""Two emulated RDMA adapters that reach each other, in the real world or in the virtual one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.verbs import (
    Access,
    Completion,
    CompletionQueue,
    Destination,
    Opcode,
    SendWork,
    Span,
    State,
    Timing,
)
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values
from ompy.runtime.launching.singleton import SingletonWireUp
from ompy.trace.sink import Trace
from ompy_components.nic.hca.component import COMPONENT
from ompy_components.nic.hca.device import Hca

from tests.support.networks import World

DEFAULTS = {parameter.name: parameter.default for parameter in COMPONENT.parameters}
ALL = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC
TIMING = Timing(timeout=8, retry_count=7, rnr_retry=7, rnr_timer=1)  # 1 ms; 10 us
SIZE = 1 << 16


class End:
    """A device in use: one domain, one completion queue read into `done`, one registered memory.

    Attributes:
        pairs: its queue pairs.
    """

    def __init__(
        self, context: RankContext, *, index: int = 0, depth: int = 4096, **settings: int
    ) -> None:
        interface = context.network.interfaces()[index]
        self.nic = Hca(context, index, interface, Values({**DEFAULTS, **settings}))
        self.nic.open()
        self.domain = self.nic.domain()
        self.queue: CompletionQueue = self.nic.completion_queue(depth)
        self.memory = memoryview(bytearray(SIZE))
        self.region = self.domain.register(self.memory, ALL)
        self.done: list[Completion] = []
        self.pairs: list[Any] = []

    def pair(self, *, send_depth: int = 256, receive_depth: int = 256, **more: Any) -> Any:
        """A queue pair in INIT."""
        if "shared" in more:
            receive_depth = 0
        made = self.domain.queue_pair(
            self.queue,
            self.queue,
            send_depth=send_depth,
            receive_depth=receive_depth,
            inline_max=more.pop("inline_max", 64),
            **more,
        )
        made.modify(State.INIT)
        self.pairs.append(made)
        return made

    def span(self, begin: int, size: int) -> Span:
        return Span(self.memory[begin : begin + size], self.region.lkey)

    def poll(self, most: int = 1000) -> int:
        found = self.queue.poll(most)
        self.done += found
        return len(found)

    def outcome(self) -> list[tuple[Opcode, str, object]]:
        """What completed: operation, status, context."""
        return [(one.opcode, one.status.name, one.context) for one in self.done]


def contexts(world: World) -> list[RankContext]:
    """A context for each side."""
    made = []
    for rank, network in enumerate((world.left, world.right)):
        engine = world.engines[rank]
        made.append(
            RankContext(
                rank,
                [Proc(other, 0, other, "here") for other in range(2)],
                engine=engine,
                network=network,
                wireup=SingletonWireUp(),
                trace=Trace(rank, engine.now),
                job_id=b"j" * 8,
                job_key=b"k" * 32,
            )
        )
    return made


def join_one(pair: Any, there: Destination, timing: Timing = TIMING) -> None:
    """Take a queue pair that is in INIT to RTS."""
    pair.modify(State.RTR, there=there, timing=timing)
    pair.modify(State.RTS, timing=timing)


def join(near: Any, far: Any, timing: Timing = TIMING) -> None:
    """Connect two queue pairs that are in INIT."""
    join_one(near, far.here(), timing)
    join_one(far, near.here(), timing)


def ends(world: World, **settings: int) -> tuple[End, End]:
    """Two devices with one connected queue pair each; closed at the world's end."""
    near, far = (End(context, **settings) for context in contexts(world))
    world.at_end(near.nic.close)
    world.at_end(far.nic.close)
    join(near.pair(), far.pair())
    return near, far


def until(world: World, sides: Sequence[End], ready: Callable[[], bool]) -> None:
    """Poll both until something holds."""

    def step() -> bool:
        for side in sides:
            side.poll()
        return ready()

    world.until(step)


def send(end: End, begin: int, size: int, context: object = "send", **more: Any) -> SendWork:
    """A send of so many bytes of the end's memory."""
    return SendWork(Opcode.SEND, [end.span(begin, size)], context, **more)


def remote(
    opcode: Opcode, end: End, begin: int, size: int, target: Any, at: int = 0, **more: Any
) -> SendWork:
    """Work on the memory of a region of the peer."""
    more.setdefault("rkey", target.rkey)
    more.setdefault("context", opcode.name)
    return SendWork(opcode, [end.span(begin, size)], remote_address=target.address + at, **more)
