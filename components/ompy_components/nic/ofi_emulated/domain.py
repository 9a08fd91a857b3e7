"""Domains: what this process has of one provider at one interface, and their progress."""

from __future__ import annotations

import errno
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
from ompy.net.base import Address, Interface, LinkError, Stream

from ompy_components.nic.ofi_emulated.completions import EmulatedQueue
from ompy_components.nic.ofi_emulated.door import Door
from ompy_components.nic.ofi_emulated.doubts import Doubts
from ompy_components.nic.ofi_emulated.endpoint import EmulatedEndpoint, EmulatedScalable
from ompy_components.nic.ofi_emulated.errors import ENOSYS, EOPBADSTATE, refusal, words
from ompy_components.nic.ofi_emulated.link import Link
from ompy_components.nic.ofi_emulated.memory import Regions
from ompy_components.nic.ofi_emulated.providers import Traits, virtual
from ompy_components.nic.ofi_emulated.responder import Responder
from ompy_components.nic.ofi_emulated.timings import TIMINGS
from ompy_components.nic.ofi_emulated.vector import EmulatedVector, Name

if TYPE_CHECKING:
    from ompy.engine.timers import Timer

    from ompy_components.nic.ofi_emulated.device import EmulatedFabric
    from ompy_components.nic.ofi_emulated.memory import EmulatedRegion
    from ompy_components.nic.ofi_emulated.receives import Receives

MS: Final = 1_000_000  # ns; Linux counts so
LINGER: Final = 1_000 * MS  # ns; arbitrary: long enough for a peer that polls
KEY_SIZE: Final = 8  # bytes; reference ofi.md C1


class EmulatedDomain(FabricDomain):
    """One domain.

    Attributes:
        library: device it belongs to.
        counts: what it has counted, all domains together.
        interface: where its connections go.
        traits: how the provider behaves.
        context: of the rank.
        engine: of the rank.
        network: of the rank.
        ranks: of the job.
        readiness: all its sockets.
        regions: its memory.
        queues: completion queues that are open.
        gone: why the device under it can never be used again; empty while it can.
        handshake_timeout: ns a connection may take to prove itself.
        stations: what its work takes in simulated worlds.
        wire: the link its connections go over there; None for the network's own.
    """

    def __init__(
        self, library: EmulatedFabric, info: FabricInfo, interface: Interface, traits: Traits
    ) -> None:
        """Listen.

        Raises:
            LinkError: no port could be had.
        """
        self.library = library
        self.counts = library.counts
        self.info = info
        self.interface = interface
        self.traits = traits
        self.context = library.context
        self.engine = library.context.engine
        self.network = library.context.network
        self.ranks = library.context.size
        self.readiness = self.network.readiness()
        draw = self._draw if info.mr_mode & (MrMode.PROV_KEY | MrMode.BASIC) else None
        self.regions = Regions(draw, virtual(info.mr_mode), self._given_back)
        self.queues: set[EmulatedQueue] = set()
        self.gone = ""
        carries, values = library.carries, library.values
        clocked = library.clocked and carries is None
        clock = DeviceClock(self.engine, self.network, wanted=values.clock and clocked)
        self.stations = Stations(clock, timed(vars(values), TIMINGS))
        self.wire = self.stations.link if clocked else carries
        self.handshake_timeout: int = library.values.handshake_timeout_ms * MS
        self._vectors: set[EmulatedVector] = set()
        self._links: dict[Address, Link] = {}
        self._responders: dict[Responder, None] = {}
        self._endpoints: dict[int, dict[int, EmulatedEndpoint]] = {}
        self._epochs: dict[int, int] = {}
        self._made = 0
        self._posts = 0
        self._timers: list[Timer] = []
        self._closed = False
        self._doubts = Doubts(self, library.values.ack_timeout_ms * MS)
        self._door = Door(self)

    # -- what is made of it

    def register(self, memory: memoryview, access: Caps, key: int) -> MemoryRegion:
        """A region."""
        self.usable()
        self.stations.registered(memory.nbytes)
        return self.regions.register(memory, access, key)

    def address_vector(self) -> AddressVector:
        """An empty one."""
        self.usable()
        made = EmulatedVector(self)
        self._vectors.add(made)
        return made

    def completion_queue(self, depth: int = 0) -> CompletionQueue:
        """One for `depth` completions, or as many as a queue has at most."""
        self.usable()
        most: int = self.library.values.cq_depth
        made = EmulatedQueue(self, min(depth or most, most))
        self.queues.add(made)
        return made

    def endpoint(self, vector: AddressVector, queue: CompletionQueue) -> FabricEndpoint:
        """One with a context of its own."""
        self.usable()
        self._made += 1
        self._endpoints[self._made] = {}
        return self.make_context(vector, queue, self._made, 0)

    def scalable_endpoint(self, vector: AddressVector, contexts: int) -> ScalableEndpoint:
        """One with several."""
        self.usable()
        most = self.info.tx_contexts_max
        if most <= 1:
            raise refusal(ENOSYS, f"{self.info.provider} has no scalable endpoints")
        if not 0 < contexts <= most:
            raise refusal(errno.EINVAL, f"{contexts} contexts; there are {most} at most")
        assert isinstance(vector, EmulatedVector)
        self._made += 1
        self._endpoints[self._made] = {}
        return EmulatedScalable(self, vector, self._made, contexts)

    def make_context(
        self, vector: AddressVector, queue: CompletionQueue, number: int, index: int
    ) -> EmulatedEndpoint:
        """A context of an endpoint."""
        self.usable()
        assert isinstance(vector, EmulatedVector)
        assert isinstance(queue, EmulatedQueue)
        if vector not in self._vectors or queue not in self.queues:
            raise refusal(errno.EINVAL, "the vector or the queue is not open in this domain")
        contexts = self._endpoints.get(number)
        if contexts is None or index in contexts:
            raise refusal(errno.EINVAL, f"context {index} of endpoint {number} is there or gone")
        made = contexts[index] = EmulatedEndpoint(self, vector, queue, number, index)
        return made

    def forget_context(self, context: EmulatedEndpoint) -> None:
        """A context is closed."""
        contexts = self._endpoints.get(context.number, {})
        if contexts.pop(context.index, None) is None:
            return
        for link in list(self._links.values()):
            link.forget(context)
        self._withdraw(context.receives)

    def forget_endpoint(self, number: int) -> None:
        """An endpoint is closed."""
        for context in list(self._endpoints.pop(number, {}).values()):
            context.close()

    def forget_vector(self, vector: EmulatedVector) -> None:
        """A vector is closed."""
        self._vectors.discard(vector)

    def name_of(self, number: int) -> bytes:
        """The name of an endpoint."""
        return Name(self.context.rank, self._door.address, number).packed()

    def context_of(self, number: int, index: int) -> EmulatedEndpoint | None:
        """Which context a request is for; None: it is not there, or not enabled."""
        contexts = self._endpoints.get(number)
        if not contexts:
            return None
        context = contexts.get(index % len(contexts))
        return context if context is not None and context.enabled else None

    def _draw(self) -> int:
        return int.from_bytes(self.network.entropy(KEY_SIZE), "little")

    def _given_back(self, region: EmulatedRegion) -> None:
        self.stations.deregistered()
        self._withdraw(region)

    def _withdraw(self, subject: EmulatedRegion | Receives) -> None:
        for responder in list(self._responders):
            responder.withdraw(subject)

    # -- peers

    def link_to(self, name: Name) -> Link:
        """The way to the domain of an endpoint."""
        found = self._links.get(name.listener)
        if found is None:
            found = self._links[name.listener] = Link(self, name.rank, name.listener)
        return found

    def release_link(self, listener: Address) -> None:
        """A peer is forgotten: so is the way to its domain, unless others are there."""
        if not any(vector.reaches(listener) for vector in self._vectors):
            link = self._links.pop(listener, None)
            if link is not None:
                link.say_bye()
                link.close()

    def respond_to(self, stream: Stream, rank: int, epoch: int) -> None:
        """A peer's connection is proven."""
        if epoch > self.epoch_of(rank):
            self._end_epoch(rank, epoch - 1, "the peer has found the path broken")
        self._responders[Responder(self, stream, rank, epoch)] = None

    def epoch_of(self, rank: int) -> int:
        """How often the path to a rank has broken, as far as is known."""
        return self._epochs.get(rank, 0)

    def path_broke(self, rank: int, epoch: int) -> None:
        """A link has, of its own."""
        self._epochs[rank] = max(self.epoch_of(rank), epoch + 1)

    def peer_broke(self, rank: int, epoch: int, why: str) -> None:
        """A peer's connection has, without a word: what goes the other way is broken too."""
        if epoch >= self.epoch_of(rank) and not self._closed:
            told = self._end_epoch(rank, epoch, why)
            if not told:
                self.notice(errno.ECONNRESET, f"{words(errno.ECONNRESET)}: rank {rank}: {why}")

    def _end_epoch(self, rank: int, epoch: int, why: str) -> bool:
        """Break the links to a rank up to an epoch. Whether there was one."""
        self._epochs[rank] = epoch + 1
        links = [link for link in self.links if link.rank == rank and link.breakable(epoch)]
        for link in links:
            link.broken(errno.ECONNRESET, why)
        return bool(links)

    def notice(self, number: int, detail: str) -> None:
        """Something broke that nothing was under way on: tell whoever reads a queue."""
        for contexts in self._endpoints.values():
            for context in contexts.values():
                if context.enabled and not self._closed:
                    context.received(Completion(None, 0, number, detail))
                    return

    def forget_responder(self, responder: Responder) -> None:
        """It is closed."""
        self._responders.pop(responder, None)

    @property
    def failover(self) -> bool:
        """Whoever uses the device goes on over another rail when a path is dead."""
        return self.library.failover

    def refuses_this(self) -> bool:
        """Whether this post is one of those that the device refuses by habit."""
        self._posts += 1
        every: int = self.library.values.again_every
        return every > 0 and self._posts % every == 0

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
        for ready in self.readiness.poll():
            ready.owner.ready(ready.readable, ready.writable)  # type: ignore[attr-defined]
        self._doubts.look()

    def pressing(self) -> bool:
        """Whether `progress` would find something to do."""
        if self._closed:
            return False
        return bool(self.gone) or bool(self.readiness.poll()) or self._doubts.pressing

    def wake_in(self, delay: int) -> None:
        """See that the rank is awake then."""
        due = self.engine.now() + delay
        if not self._timers or self._timers[-1].deadline != due:
            self._timers = [timer for timer in self._timers if timer.pending]
            self._timers.append(self.engine.call_later(delay, _nothing))

    def look_after_links(self) -> None:
        """Something waits for an answer."""
        self._doubts.begin()

    def settled(self, link: Link) -> None:
        """A link is closed: nobody has to know about its path."""
        self._doubts.settle(link)

    @property
    def links(self) -> list[Link]:
        """The ways there are."""
        return list(self._links.values())

    # -- ends

    def lost(self, why: str) -> None:
        """The device under it is gone: everything under way ends badly."""
        if self.gone:
            return
        self.gone = f"{self.interface.name}: {why}"
        self.library.report(EventKind.DEVICE_FATAL, self.gone, self)
        for link in self.links:
            link.broken(errno.ENODEV, why)
        for responder in list(self._responders):
            responder.close()

    def _said(self) -> bool:
        """Nothing waits to be sent; tries to."""
        self.progress()
        return not any(one.speaking for one in self._ends())

    def _ends(self) -> list[Link | Responder]:
        return [*self._links.values(), *self._responders]

    def close(self) -> None:
        """Send what was taken from posts that are complete; then give everything back."""
        if self._closed:
            return
        for one in self._ends():
            one.say_bye()
        if not self._said():
            self.engine.wait_until(self._said, LINGER)
        for number in list(self._endpoints):
            self.forget_endpoint(number)
        self._closed = True
        for link in self.links:
            link.close()
        self._links.clear()
        for responder in list(self._responders):
            responder.close()
        self.regions.close()
        for queue in list(self.queues):
            queue.close()
        self._doubts.close()
        self._door.close()
        for timer in self._timers:
            timer.cancel()
        self.readiness.close()
        self.library.forget_domain(self)


def listening(
    library: EmulatedFabric, info: FabricInfo, interface: Interface, traits: Traits
) -> EmulatedDomain:
    """A domain. Raises FabricError when it cannot listen."""
    try:
        return EmulatedDomain(library, info, interface, traits)
    except LinkError as problem:
        raise refusal(errno.EADDRNOTAVAIL, str(problem)) from problem


def _nothing() -> None:
    """The rank is awake: whoever reads a completion queue makes the domain look."""
