"""Domains: what this process has of one provider at one interface, and their progress."""

from __future__ import annotations

import errno
from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.frameworks.nic.base import EventKind
from ompy.frameworks.nic.clock import DeviceClock
from ompy.frameworks.nic.clock_parameters import timed
from ompy.frameworks.nic.fabric import (
    AddressVector,
    Caps,
    Completion,
    CompletionQueue,
    FabricDomain,
    FabricEndpoint,
    FabricInfo,
    MemoryRegion,
    MrMode,
    ScalableEndpoint,
)
from ompy.frameworks.nic.stations import Stations
from ompy.net.base import Address, Interface, LinkError

from ompy_components.nic.ofi_emulated.completions import EmulatedQueue
from ompy_components.nic.ofi_emulated.endpoint import EmulatedEndpoint, EmulatedScalable, Place
from ompy_components.nic.ofi_emulated.errors import ENOSYS, EOPBADSTATE, refusal
from ompy_components.nic.ofi_emulated.links.accepting import PeerListener
from ompy_components.nic.ofi_emulated.links.peers import Peers
from ompy_components.nic.ofi_emulated.memory import Regions
from ompy_components.nic.ofi_emulated.providers import Traits, virtual
from ompy_components.nic.ofi_emulated.refusals import Refusals
from ompy_components.nic.ofi_emulated.resources import DeviceServices, Resources
from ompy_components.nic.ofi_emulated.timings import TIMINGS
from ompy_components.nic.ofi_emulated.vector import EmulatedVector, Name

if TYPE_CHECKING:
    from ompy.engine.timers import Timer

    from ompy_components.nic.ofi_emulated.memory import EmulatedRegion
    from ompy_components.nic.ofi_emulated.receives import Receives

MS: Final = 1_000_000  # ns; Linux counts so
LINGER: Final = 1_000 * MS  # ns; arbitrary: long enough for a peer that polls
KEY_SIZE: Final = 8  # bytes; reference ofi.md C1


class EmulatedDomain(FabricDomain):
    """One domain.

    Attributes:
        regions: its memory.
        peers: links to them, and what they have connected.
        queues: completion queues that are open.
        gone: why the device under it can never be used again; empty while it can.
        stations: what its work takes in simulated worlds.
    """

    def __init__(
        self, device: DeviceServices, info: FabricInfo, interface: Interface, traits: Traits
    ) -> None:
        """Listen.

        Args:
            device: what it has of its device.
            info: of a provider at an interface.
            interface: that one.
            traits: how the provider behaves.

        Raises:
            LinkError: no port could be had.
        """
        self.info = info
        self.queues: set[CompletionQueue] = set()
        self.gone = ""
        self._device = device
        self._engine = device.context.engine
        self._interface = interface
        self._readiness = device.context.network.readiness()
        self._vectors: set[EmulatedVector] = set()
        self._endpoints: dict[int, dict[int, EmulatedEndpoint]] = {}
        self._made = 0
        self._timers: list[Timer] = []
        self._closed = False
        draw = self._draw if info.mr_mode & (MrMode.PROV_KEY | MrMode.BASIC) else None
        self.regions = Regions(draw, virtual(info.mr_mode), self._given_back)
        resources = self._shared(traits)
        self.stations = resources.stations
        self._resources = resources
        patience = device.values.ack_timeout_ms * MS
        self.peers = Peers(resources, patience, device.fails_over, self._receives_of)
        self._accepting = PeerListener(resources, self.peers.respond_to)

    def _shared(self, traits: Traits) -> Resources:
        """What its parts share."""
        device = self._device
        context, values, carries = device.context, device.values, device.carries
        clocked = device.clocked and carries is None
        clock = DeviceClock(context.engine, context.network, wanted=values.clock and clocked)
        stations = Stations(clock, timed(vars(values), TIMINGS))
        return Resources(
            context=context,
            info=self.info,
            interface=self._interface,
            traits=traits,
            wire=stations.link if clocked else carries,
            handshake_timeout=values.handshake_timeout_ms * MS,
            readiness=self._readiness,
            regions=self.regions,
            stations=stations,
            counts=device.counts,
            refusals=Refusals(values.again_every),
            usable=self.usable,
            lost=self._lost,
            notice=self._notice,
            wake_in=self.wake_in,
        )

    # -- what is made of it

    def register(self, memory: memoryview, access: Caps, key: int) -> MemoryRegion:
        """A region."""
        self.usable()
        self.stations.registered(memory.nbytes)
        return self.regions.register(memory, access, key)

    def address_vector(self) -> AddressVector:
        """An empty one."""
        self.usable()
        made = EmulatedVector(
            self._resources.context.size, self._release_link, self._vectors.discard
        )
        self._vectors.add(made)
        return made

    def completion_queue(self, depth: int = 0) -> CompletionQueue:
        """One for `depth` completions, or as many as a queue has at most."""
        self.usable()
        most: int = self._device.values.cq_depth
        made = EmulatedQueue(self._resources, self, min(depth or most, most), self.queues.discard)
        self.queues.add(made)
        return made

    def endpoint(self, vector: AddressVector, queue: CompletionQueue) -> FabricEndpoint:
        """One with a context of its own."""
        self.usable()
        return self._make_context(vector, self._new_endpoint(), queue, 0)

    def _new_endpoint(self) -> int:
        self._made += 1
        self._endpoints[self._made] = {}
        return self._made

    def scalable_endpoint(self, vector: AddressVector, contexts: int) -> ScalableEndpoint:
        """One with several."""
        self.usable()
        most = self.info.tx_contexts_max
        if most <= 1:
            raise refusal(ENOSYS, f"{self.info.provider} has no scalable endpoints")
        if not 0 < contexts <= most:
            raise refusal(errno.EINVAL, f"{contexts} contexts; there are {most} at most")
        assert isinstance(vector, EmulatedVector)
        number = self._new_endpoint()
        return EmulatedScalable(
            self._resources,
            self._name_of(number),
            contexts,
            partial(self._make_context, vector, number),
            partial(self._forget_endpoint, number),
        )

    def _make_context(
        self, vector: AddressVector, number: int, queue: CompletionQueue, index: int
    ) -> EmulatedEndpoint:
        self.usable()
        assert isinstance(vector, EmulatedVector)
        assert isinstance(queue, EmulatedQueue)
        if vector not in self._vectors or queue not in self.queues:
            raise refusal(errno.EINVAL, "the vector or the queue is not open in this domain")
        contexts = self._endpoints.get(number)
        if contexts is None or index in contexts:
            raise refusal(errno.EINVAL, f"context {index} of endpoint {number} is there or gone")
        place = Place(self._name_of(number), number, index)
        parts = self._resources, vector, queue, place
        made = EmulatedEndpoint(*parts, self.peers.link_to, self._forget_context)
        contexts[index] = made
        return made

    def _forget_context(self, context: EmulatedEndpoint) -> None:
        """A context is closed."""
        contexts = self._endpoints.get(context.number, {})
        if contexts.pop(context.index, None) is not None:
            self.peers.forget_context(context, context.receives)

    def _forget_endpoint(self, number: int) -> None:
        """An endpoint is closed."""
        for context in list(self._endpoints.pop(number, {}).values()):
            context.close()

    def _name_of(self, number: int) -> bytes:
        return Name(self._resources.context.rank, self._accepting.address, number).packed()

    def _receives_of(self, number: int, index: int) -> Receives | None:
        """Of the context a request is for; None: it is not there, or not enabled."""
        contexts = self._endpoints.get(number)
        if not contexts:
            return None
        context = contexts.get(index % len(contexts))
        return context.receives if context is not None and context.enabled else None

    def _draw(self) -> int:
        return int.from_bytes(self._device.context.network.entropy(KEY_SIZE), "little")

    def _given_back(self, region: EmulatedRegion) -> None:
        self.stations.deregistered()
        self.peers.withdraw(region)

    def _release_link(self, listener: Address) -> None:
        """A peer is forgotten: so is the way to its domain, unless others are there."""
        if not any(vector.reaches(listener) for vector in self._vectors):
            self.peers.release_link(listener)

    def _notice(self, number: int, detail: str) -> None:
        """Something broke that nothing was under way on: tell whoever reads a queue."""
        for contexts in self._endpoints.values():
            for context in contexts.values():
                if context.enabled and not self._closed:
                    context.received(Completion(None, 0, number, detail))
                    return

    # -- progress

    def usable(self) -> None:
        """Raise FabricError unless it is open and there."""
        if self.gone:
            raise refusal(errno.ENODEV, self.gone)
        if self._closed:
            raise refusal(EOPBADSTATE, "the domain is closed")

    def progress(self) -> None:
        """Serve every socket that is ready."""
        if self._closed:
            return
        for ready in self._readiness.poll():
            ready.owner.ready(ready.readable, ready.writable)  # type: ignore[attr-defined]
        self.peers.doubts.look()

    def pressing(self) -> bool:
        """Whether `progress` would find something to do."""
        if self._closed:
            return False
        return bool(self.gone) or bool(self._readiness.poll()) or self.peers.doubts.pressing

    def wake_in(self, delay: int) -> None:
        """See that the rank is awake then."""
        due = self._engine.now() + delay
        if not self._timers or self._timers[-1].deadline != due:
            self._timers = [timer for timer in self._timers if timer.pending]
            self._timers.append(self._engine.call_later(delay, _nothing))

    # -- ends

    def _lost(self, why: str) -> None:
        """The device under it is gone: everything under way ends badly."""
        if self.gone:
            return
        self.gone = f"{self._interface.name}: {why}"
        self._device.report(EventKind.DEVICE_FATAL, self.gone, self)
        self.peers.lost(why)

    def _said(self) -> bool:
        """Nothing waits to be sent; tries to."""
        self.progress()
        return not self.peers.speaking

    def close(self) -> None:
        """Send what was taken from posts that are complete; then give everything back."""
        if self._closed:
            return
        self.peers.say_bye()
        if not self._said():
            self._engine.wait_until(self._said, LINGER)
        for number in list(self._endpoints):
            self._forget_endpoint(number)
        self._closed = True
        self.peers.close()
        self.regions.close()
        for queue in list(self.queues):
            queue.close()
        self._accepting.close()
        for timer in self._timers:
            timer.cancel()
        self._readiness.close()
        self._device.closed(self)


def listening(
    device: DeviceServices, info: FabricInfo, interface: Interface, traits: Traits
) -> EmulatedDomain:
    """A domain. Raises FabricError when it cannot listen."""
    try:
        return EmulatedDomain(device, info, interface, traits)
    except LinkError as problem:
        raise refusal(errno.EADDRNOTAVAIL, str(problem)) from problem


def _nothing() -> None:
    """The rank is awake: whoever reads a completion queue makes the domain look."""
