"""Virtual worlds in which each rank has a device of the component under test, and nothing more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, Final

import pytest

from ompy.conformance.component_kit import ComponentSuite
from ompy.conformance.registries import Settings, registry_with
from ompy.conformance.watched_network import Wire
from ompy.engine.base import Poller
from ompy.engine.virtual_engine import Deadlock, RankFailed, VirtualEngine
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import Nic, NicComponent
from ompy.frameworks.nic.datagram import (
    Completion,
    CompletionQueue,
    DatagramNic,
    QueuePair,
    Work,
)
from ompy.mca.errors import ComponentError
from ompy.mca.plugins.component_records import State
from ompy.mca.registry import Registry
from ompy.net.base import Address
from ompy.net.faults.middleware import Fault, FaultCounter
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.ranks.nic_selection import find_nics
from ompy.runtime.simulation.virtual_job import VirtualJob

SECOND: Final = 1_000_000_000  # ns; Linux counts so
WAIT: Final = 5 * SECOND  # ns; arbitrary: thousands of times a packet's way
FIRST_PAUSE: Final = 20_000  # ns; arbitrary: a packet's way
DEPTH: Final = 32  # work entries of each queue; arbitrary: real devices have as many at least
TRIES: Final = 200  # times that a message is sent before its device is taken to lose all; arbitrary

Plan = Callable[["Station"], "Sequence[Fault]"]


class Station(Poller):
    """One rank: a device in use, with a queue pair whose completions are read into `done`.

    Attributes:
        context: the rank.
        nics: the devices that the component offers.
        nic: the first of them, open.
        queue: of completions.
        pair: reports to it.
        memory: registered, in slots of the largest message each.
        done: the completions, oldest first.
        counter: of faults delivered.
        everybody: the addresses of all ranks' queue pairs, when all have come up.
        shared: what the programs of a world hand each other.
    """

    def __init__(self, world: NicWorld, context: RankContext, registry: Registry) -> None:
        self.context = context
        self.wire = Wire(context.network, context.engine)
        context.network = self.wire
        self.counter = world.counter
        for fault in world.plan(self):
            self.wire.install(fault)
        self.registry = registry
        self.nics = find_nics(registry, context, DatagramNic, world.name)
        self.nic = self.nics[0]
        self.nic.open()
        self.queue: CompletionQueue = self.nic.domain().completion_queue(2 * DEPTH)
        size = self.nic.max_message
        self.pair: QueuePair = self.nic.domain().queue_pair(self.queue, DEPTH, DEPTH, size)
        self.memory = memoryview(bytearray(2 * DEPTH * size))
        self.registration = self.nic.domain().register(self.memory)
        self.done: list[Completion] = []
        self.shared = world.shared
        self._world = world
        context.engine.add_poller(self)
        self.everybody: list[Address] = world.meet_all(self)

    @property
    def engine(self) -> VirtualEngine:
        """Its clock and chance."""
        engine = self.context.engine
        assert isinstance(engine, VirtualEngine)
        return engine

    def poll(self) -> int:
        """Read completions."""
        found = self.queue.read(DEPTH)
        self.done += found
        return len(found)

    def arm(self) -> bool:
        """Sleep only when none is there."""
        return not self.queue.ready()

    def slot(self, number: int) -> memoryview:
        """Memory for one message: the first half is for sending, the second for receiving."""
        size = self.nic.max_message
        return self.memory[number * size : (number + 1) * size]

    def post_buffers(self, count: int = DEPTH, size: int = 0) -> None:
        """Give the device buffers, their slots being their contexts."""
        for number in range(DEPTH, DEPTH + count):
            self.pair.post_receive(self.slot(number)[: size or None], number)

    def send(self, target: int, data: bytes, context: object, *, slot: int = 0) -> None:
        """Post a send from a slot."""
        self.slot(slot)[: len(data)] = data
        self.pair.post_send(self.slot(slot)[: len(data)], self.everybody[target], context)

    def of_kind(self, work: Work) -> list[Completion]:
        """The completions of sends, or of receives."""
        return [one for one in self.done if one.work is work]

    def has_sent(self, before: int) -> bool:
        """Whether more sends are complete than there were before."""
        return len(self.of_kind(Work.SEND)) > before

    def wait(self, holds: Callable[[], bool], what: str) -> None:
        """Progress until it holds.

        Raises:
            AssertionError: that took long.
        """
        deadline, pause = self.engine.now() + WAIT, FIRST_PAUSE
        # in growing steps, as `holds` may look at another rank, whose news wakes nobody here
        while not self.engine.wait_until(holds, pause):
            assert self.engine.now() < deadline, f"waited {WAIT // SECOND} s for {what}"
            pause = min(2 * pause, SECOND)

    def pass_time(self, duration: int) -> None:
        """Progress for so many ns."""
        self.engine.wait_until(lambda: False, duration)

    def send_until(self, target: int, data: bytes, arrived: Callable[[], bool]) -> None:
        """Send a message again and again until it has arrived: a device may lose some.

        Raises:
            AssertionError: none of many arrived.
        """
        for number in range(TRIES):
            sent = len(self.of_kind(Work.SEND))
            self.send(target, data, ("again", number))
            self.wait(partial(self.has_sent, sent), "a send to complete")
            if self.engine.wait_until(arrived, 10 * FIRST_PAUSE):
                return
        raise AssertionError(f"{TRIES} sends of {len(data)} bytes, and none arrived")

    def meet(self) -> None:
        """Return when all ranks have called it; their addresses are known anew."""
        self.everybody = self._world.meet_all(self)

    def finalize(self) -> None:
        """Close the device, if the program has not."""
        self.context.engine.remove_poller(self)
        self.nic.close()
        self.wire.close()


class NicWorld:
    """Ranks with a device each.

    Attributes:
        name: of the component.
        plan: the faults that each rank's network has.
        counter: of those delivered.
        shared: what the programs of a test hand each other.
    """

    def __init__(self, component: NicComponent, settings: Settings, plan: Plan) -> None:
        self.name = component.name
        self.plan = plan
        self.counter = FaultCounter()
        self.shared: dict[Any, Any] = {}
        self._component = component
        self._settings = settings
        self._rounds: list[dict[int, Address]] = []
        self._at: dict[int, int] = {}
        self._ranks = 0

    def play(
        self, program: Callable[[Station], Any], ranks: int = 2, seed: int = 0
    ) -> tuple[list[Any], VirtualJob]:
        """Run a program on every rank; what they returned.

        Raises:
            AssertionError: a program found something wrong.
        """
        self._ranks = ranks
        registry = nic_registry(self._component, self._settings)
        job = VirtualJob(
            ranks,
            registry,
            seed=seed,
            rails=(Rail("rail0"),),
            hosts=list(range(ranks)),
            bring_up=lambda context, using: Station(self, context, using),
        )
        try:
            return played(job, program), job
        finally:
            registry.close()

    def meet_all(self, station: Station) -> list[Address]:
        """Wait until all ranks have come to the same meeting; the addresses they came with."""
        rank = station.context.rank
        turn = self._at[rank] = self._at.get(rank, -1) + 1
        if turn == len(self._rounds):
            self._rounds.append({})
        here = self._rounds[turn]
        here[rank] = station.pair.address
        station.wait(lambda: len(here) == self._ranks, "the other ranks")
        return [here[other] for other in range(self._ranks)]


class NicSuite(ComponentSuite):
    """Base of the suites for nic components."""

    framework: ClassVar[str] = "nic"

    @pytest.fixture
    def available(self, component: NicComponent, settings: Settings) -> NicComponent:
        """The component, if it has devices in a virtual world."""
        reason = why_not_available(component, settings)
        if reason:
            pytest.skip(f"not judged: {reason}")
        return component

    @pytest.fixture
    def datagrams(self, component: NicComponent, settings: Settings) -> MakeWorld:
        """What makes worlds whose ranks have a device for datagrams each."""
        if not has_kind(component, DatagramNic):
            pytest.skip("capability off: datagrams")
        reason = why_not_available(component, settings)
        if reason:
            pytest.skip(f"not judged: {reason}")
        return lambda plan=_no_faults: NicWorld(component, settings, plan)


MakeWorld = Callable[..., NicWorld]


def _no_faults(_station: Station) -> Sequence[Fault]:
    return ()


def nic_registry(component: NicComponent, settings: Settings) -> Registry:
    """A registry in which the component is the only one of nic that may be used."""
    about = component.framework, component.name, component.version
    return registry_with(*about, component, {"nic": component.name, **settings})


def played(job: VirtualJob, program: Callable[[Any], Any]) -> list[Any]:
    """Run a program on every rank of a job; what they returned.

    Raises:
        AssertionError: a program found something wrong.
    """
    seed = job.scheduler.seed
    try:
        return job.run(program)
    except RankFailed as failure:
        cause = failure.__cause__ or failure
        text = str(cause) if isinstance(cause, AssertionError) else repr(cause)
        raise AssertionError(f"rank {failure.rank}, seed {seed}: {text}") from cause
    except Deadlock as problem:
        raise AssertionError(f"seed {seed}: nobody can go on: {problem}") from None


def why_not_available(component: NicComponent, settings: Settings) -> str:
    """Why it has no devices in a virtual world; empty when it has.

    Only what a component says itself counts, by `NotAvailable`: anything else is a failure.
    """
    found: list[str] = []
    registry = nic_registry(component, settings)

    def bring_up(context: RankContext, _using: Registry) -> SimpleNamespace:
        with suppress(ComponentError):
            find_nics(registry, context, Nic, component.name)
        records = registry.records_of("nic")
        found.extend(
            record.reason
            for record in records
            if record.name == component.name and record.state is State.NOT_AVAILABLE
        )
        return SimpleNamespace(finalize=lambda: None)

    try:
        with suppress(RankFailed):
            VirtualJob(1, registry, bring_up=bring_up).run(lambda _rank: None)
    finally:
        registry.close()
    return found[0] if found else ""


def has_kind(component: NicComponent, kind: type[Nic]) -> bool:
    """Whether its devices have an interface."""
    return any(issubclass(has, kind) for has in component.kinds)
