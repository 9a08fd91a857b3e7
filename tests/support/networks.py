"""Two networks that reach each other, in the real world or in the virtual one, without ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import pytest
from ompy.engine.base import Engine
from ompy.engine.real import RealEngine
from ompy.engine.virtual import Conductor
from ompy.net.base import Network, Stream
from ompy.net.real import RealNetwork
from ompy.net.virtual import Fabric, Rail, VirtualNetwork
from ompy.runtime.world import LonelyWireUp


class World:
    """Two networks with their engines, and a way to let time pass."""

    def __init__(
        self,
        networks: Sequence[Network],
        engines: Sequence[Engine],
        until: Callable[[Callable[[], bool]], None],
    ):
        self.left, self.right = networks
        self.engines = engines
        self.until = until
        self._end = ExitStack()
        self.at_end = self._end.callback
        self.hosts = [network.interfaces()[0].address for network in networks]

    def close(self) -> None:
        """Do what was registered with `at_end`."""
        self._end.close()

    def pair(self) -> tuple[Stream, Stream]:
        listener = self.left.listen(self.hosts[0])
        near = self.right.connect(listener.address)
        accepted: list[Stream] = []

        def ready() -> bool:
            stream = listener.accept()
            if stream is not None:
                accepted.append(stream)
            return bool(accepted)

        self.until(ready)
        listener.close()
        return accepted[0], near


@contextmanager
def two_networks(kind: str) -> Iterator[World]:
    """A `real` world on loopback or a `virtual` one."""
    if kind == "real":
        engine = RealEngine(1)
        nets = [RealNetwork(engine, 0, LonelyWireUp()) for _ in range(2)]
        world = World(
            nets,
            [engine, engine],
            lambda ready: pytest.fail("late") if not engine.wait_until(ready, 5 * 10**9) else None,
        )
        yield world
        world.close()
        for net in nets:
            net.close()
        engine.close()
        return
    conductor = Conductor(1)
    fabric = Fabric(conductor, (Rail("rail0"),), (0, 0))
    engines = [conductor.engine() for _ in range(2)]
    nets = [VirtualNetwork(fabric, rank, engine) for rank, engine in enumerate(engines)]

    def until(ready: Callable[[], bool]) -> None:
        while not ready():
            deadline = conductor._events.next_deadline()
            if deadline is None and ready():
                return
            deadline = conductor._events.next_deadline()
            assert deadline is not None, "nothing is under way"
            conductor.time = deadline
            conductor._events.run(deadline)
            for engine in engines:
                engine.poll_all()  # their timers

    world = World(nets, engines, until)
    yield world
    world.close()


def pump(world: World, source: Stream, target: Stream, data: bytes) -> bytes:
    """Send all of `data` and receive it."""
    left, got = memoryview(data), bytearray()

    def step() -> bool:
        nonlocal left
        while len(left) and (taken := source.send([left[:10], left[10:]])):
            left = left[taken:]
        room = bytearray(1000)
        while (count := target.receive_into(memoryview(room))) > 0:
            got.extend(room[:count])
        return len(got) >= len(data)

    world.until(step)
    return bytes(got)
