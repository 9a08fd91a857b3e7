"""Two networks that reach each other, in the real world or in the virtual one, without ranks."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any

import pytest
from ompy.engine.base import Engine
from ompy.engine.real import RealEngine
from ompy.engine.virtual_engine import Scheduler
from ompy.net.base import Network, Stream
from ompy.net.real import RealNetwork
from ompy.net.virtual.virtual_network import Fabric, Rail, VirtualNetwork
from ompy.runtime.launching.singleton import SingletonWireUp
from ompy.runtime.simulation.conducted import Conducted
from ompy.runtime.simulation.host_memory import Segments
from ompy.runtime.simulation.remote import RemoteNetwork
from ompy.runtime.simulation.stub import RankStub, ServedNetwork


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
    """A `real` world on loopback, a `virtual` one, or that as `simulated` ranks have it."""
    if kind == "real":
        engine = RealEngine(1)
        nets = [RealNetwork(engine, 0, SingletonWireUp()) for _ in range(2)]
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
    scheduler = Scheduler(1)
    fabric = Fabric(scheduler, (Rail("rail0"),), (0, 0))
    engines = [scheduler.engine() for _ in range(2)]
    make = simulated if kind == "simulated" else VirtualNetwork
    nets = [make(fabric, rank, engine) for rank, engine in enumerate(engines)]

    def until(ready: Callable[[], bool]) -> None:
        while True:
            for net in nets:
                if isinstance(net, RemoteNetwork):
                    net.world.call("nothing")  # as a rank that waits: what it asked for is done
            if ready() or (scheduler._events.next_deadline() is None and ready()):
                return
            deadline = scheduler._events.next_deadline()
            assert deadline is not None, "nothing is under way"
            scheduler.time = deadline
            scheduler._events.run_due(deadline)
            for engine in engines:
                engine.poll_all()  # their timers

    world = World(nets, engines, until)
    yield world
    world.close()


def simulated(fabric: Fabric, rank: int, engine: Any) -> RemoteNetwork:
    """The network of a rank's process, whose stub answers at once, in this process."""
    served = ServedNetwork(fabric, rank, engine)
    line: Any = None  # never spoken to: the rank's side hands its calls over itself
    stub = RankStub(line, 0, engine, served, SingletonWireUp(), 0.0, line, (), Segments())
    return RemoteNetwork(
        Conducted(_Straight(stub, engine)), rank, served.interfaces(), Random(rank)
    )


class _Straight:
    """The rank's end of a line, with the stub at the other one."""

    def __init__(self, stub: RankStub, engine: Engine) -> None:
        self._stub = stub
        self._engine = engine
        self._answer: tuple[str, Any] = ("ok", None)

    def send(self, batch: list[tuple[Any, ...]]) -> None:
        self._answer = self._stub._run(marshal.loads(marshal.dumps(batch)))

    def receive(self, timeout: float | None = None) -> Any:
        return self._engine.now(), *self._answer, [], self._stub._ready()


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
