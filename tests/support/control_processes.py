"""Processes with a machine, and connections between them, in a world whose time jumps.

The product's `Driver` tells the machines; its loop, its connections and the end of its process are
those of this world. Connections deliver in order, each message after a delay that one seed decides.
"""

from __future__ import annotations

import heapq
import json
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple, Protocol

from ompy.runtime.connections.control import Kind
from ompy.runtime.connections.driver import Driver
from ompy.runtime.machines.acts import PARENT, Act
from ompy.runtime.machines.events import Event, Seen


class Fault(NamedTuple):
    """What goes wrong.

    Attributes:
        kind: kill, down (a process's host), cut, or dumb: `up`, `down` or `both` ways.
        target: a process's name; of a connection, the node at its lower end.
        index: just before the how many-th act of the process, message in a direction.
        way: of a connection: whose messages are counted: `up` or `down`.
    """

    kind: str
    target: str | int
    index: int
    way: str = ""


class Surroundings(Protocol):
    """What processes need of their world."""

    faults: tuple[Fault, ...]
    struck: set[Fault]
    clock: Clock
    processes: list[Process]
    wires: list[Wire]

    def power_off(self, host: int) -> None:
        """A host is down."""


class Dead(BaseException):
    """This process has been killed in the middle of what it was doing."""


class Call:
    """A call that is to be made."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call = call
        self.off = False

    def cancel(self) -> None:
        self.off = True


class Clock:
    """Time that jumps, and chance."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.chance = Random(seed)
        self._calls: list[tuple[float, int, Call]] = []
        self._count = 0

    def at(self, when: float, call: Callable[[], object]) -> Call:
        made = Call(call)
        self._count += 1
        heapq.heappush(self._calls, (max(when, self.now), self._count, made))
        return made

    def soon(self, call: Callable[[], object], most: float = 0.01) -> Call:
        """After a while that chance decides."""
        return self.at(self.now + self.chance.random() * most, call)

    def step(self) -> bool:
        if not self._calls:
            return False
        self.now, _, made = heapq.heappop(self._calls)
        if not made.off:
            made.call()
        return True


class Process:
    """One that may die. What it does is counted, and before one of these it may be killed."""

    def __init__(self, world: Surroundings, name: str, host: int) -> None:
        self.world = world
        self.name = name
        self.host = host
        self.alive = True
        self.done = 0
        world.processes.append(self)

    def does(self) -> None:
        """It is about to do something.

        Raises:
            Dead: it has been killed.
        """
        if not self.alive:
            raise Dead
        for fault in self.world.faults:
            if fault.target == self.name and fault.index == self.done:
                self.world.struck.add(fault)
                if fault.kind == "kill":
                    self.die()
                else:
                    self.world.power_off(self.host)
                raise Dead
        self.done += 1

    def run(self, call: Callable[[], object]) -> None:
        """Something reaches it."""
        if self.alive:
            with suppress(Dead):
                call()

    def die(self) -> None:
        """The kernel ends it and closes what it had."""
        self.alive = False

    def vanish(self) -> None:
        """Its host is down: nobody closes anything."""
        self.alive = False


class Queue:
    """One direction of a connection: in order, each message after a while."""

    def __init__(
        self, clock: Clock, take: Callable[[Any], object], end: Callable[[], object]
    ) -> None:
        self._clock = clock
        self._take = take
        self._end = end
        self._under_way: deque[Any] = deque()
        self.count = 0
        self.dumb = False
        self.closed = False

    def put(self, message: Any) -> None:
        if not (self.closed or self.dumb):
            self._under_way.append(message)
            self._clock.soon(self._arrive)

    def close(self) -> None:
        """After what is under way the other end is told, if anything gets there."""
        if not self.closed:
            self.put(self)
            self.closed = True

    def drop(self) -> None:
        """What is under way is lost, and the other end hears no more of this."""
        self._under_way.clear()
        self.closed = True

    def lose(self) -> None:
        """What is under way is lost, and the other end is told, if it has not been."""
        told = self.closed and self not in self._under_way
        self._under_way.clear()
        if not told:
            self.closed = False
            self.close()

    def _arrive(self) -> None:
        if self._under_way:
            message = self._under_way.popleft()
            if message is self:
                self._end()
            else:
                self._take(message)

    def flush(self) -> None:
        """The receiver reads all that is there."""
        while self._under_way:
            self._arrive()


class Wire:
    """The connection between an agent and what has started it."""

    def __init__(
        self, world: Surroundings, upper: Driven, node: int, lower: Driven, *, remote: bool
    ) -> None:
        self.world = world
        self.node = node
        self.remote = remote
        clock = world.clock
        self.up = Queue(
            clock,
            lambda message: upper.run(lambda: upper.hear(node, message)),
            lambda: upper.run(lambda: upper.lose(node)),
        )
        self.down = Queue(
            clock,
            lambda message: lower.run(lambda: lower.hear(PARENT, message)),
            lambda: lower.run(lambda: lower.lose(PARENT)),
        )
        upper.wires[node] = lower.wires[PARENT] = self
        world.wires.append(self)

    def send(self, to: int, message: Any) -> None:
        way, queue = ("up", self.up) if to == PARENT else ("down", self.down)
        for fault in self.world.faults if self.remote else ():  # a host loses nothing within itself
            if (fault.target, fault.way, fault.index) == (self.node, way, queue.count):
                self.world.struck.add(fault)
                self._break(fault.kind)
        queue.count += 1
        queue.put(message)

    def _break(self, kind: str) -> None:
        if kind == "cut":
            self.up.lose()
            self.down.lose()
        if kind in {"dumb up", "dumb both"}:
            self.up.dumb = True
        if kind in {"dumb down", "dumb both"}:
            self.down.dumb = True

    def close(self, by: int) -> None:
        """One end closes it, and hears no more; the other is told."""
        ours, theirs = (self.up, self.down) if by == PARENT else (self.down, self.up)
        ours.close()
        theirs.drop()

    def blackout(self) -> None:
        """A host is down."""
        self.up.dumb = self.down.dumb = True


class Loop:
    """What the product's driver needs of one."""

    def __init__(self, process: Driven) -> None:
        self._process = process

    def time(self) -> float:
        return self._process.world.clock.now

    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> Call:
        process = self._process
        return process.world.clock.at(when, lambda: process.run(lambda: callback(*args)))

    def stop(self) -> None:
        self._process.end()


class Driven(Process, Driver):
    """A process with a machine."""

    def __init__(self, world: Surroundings, name: str, host: int) -> None:
        Process.__init__(self, world, name, host)
        Driver.__init__(self, Loop(self))  # type: ignore[arg-type]
        self.wires: dict[int, Wire] = {}

    def vanish(self) -> None:
        super().vanish()
        for wire in self.wires.values():
            wire.blackout()

    def hear(self, who: int, message: tuple[Kind, Mapping[str, Any], bytes]) -> None:
        what = Seen.ABOVE if who == PARENT else Seen.BELOW
        self.tell(Event(what, who, *message))

    def lose(self, who: int) -> None:
        self.wires.pop(who, None)
        what = Seen.PARENT_GONE if who == PARENT else Seen.CHILD_GONE
        self.tell(Event(what, who))

    def send(self, to: int, kind: Kind, header: Mapping[str, Any], body: bytes = b"") -> None:
        if to in self.wires:
            plain = json.loads(json.dumps(dict(header)))
            self.wires[to].send(to, (kind, plain, body))

    def disconnect(self, to: int) -> None:
        wire = self.wires.pop(to, None)
        if wire is not None:
            wire.close(to)

    def perform(self, act: Act) -> None:
        self.does()
        self.carry_out(act)

    def carry_out(self, act: Act) -> None:
        Driver.perform(self, act)

    def end(self) -> None:
        """It leaves its loop."""
        self.die()

    def die(self) -> None:
        if self.alive:
            self.alive = False
            for to in list(self.wires):
                self.disconnect(to)
            self.world.clock.soon(self.bury)

    def bury(self) -> None:
        """What others do about its end: its guard, its parent, the kernel."""
        raise NotImplementedError
