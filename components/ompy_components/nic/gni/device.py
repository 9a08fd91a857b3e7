"""One Gemini or Aries NIC of one rank."""

from __future__ import annotations

from typing import Final

from ompy.engine.base import Engine, Poller
from ompy.engine.timers import Timer
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import Identity, NicError
from ompy.frameworks.nic.gni import CommunicationDomain, GniNic
from ompy.mca.parameter import Values
from ompy.net.base import LinkError

from ompy_components.nic.gni.clock import GniClock
from ompy_components.nic.gni.domain import GniDomain
from ompy_components.nic.gni.far import FarWire
from ompy_components.nic.gni.generations import Generation
from ompy_components.nic.gni.host import HostWire
from ompy_components.nic.gni.layout import Layout
from ompy_components.nic.gni.memory import copy_of, show_probe

TAG_BITS = 8  # reference gasnet.md 4: of a protection tag
COOKIE_BITS = 32
LOOK_AGAIN: Final = 20_000  # ns; arbitrary: some steps of what is late, and a peer's turn


class GniDevice(GniNic):
    """A NIC of one generation.

    Attributes:
        kind: its generation.
        clock: what its work takes, in the virtual world.
        copy: how it reaches the memory of peers.
    """

    def __init__(self, context: RankContext, generation: Generation, values: Values) -> None:
        super().__init__(
            Identity(f"{generation.name}_0", "host", str(context.me.node), 0, 0, emulated=True)
        )
        self._context = context
        self._values = values
        self.kind = generation
        self.clock = GniClock(context, generation.name, values)
        self.generation = generation.name
        self.address = self.address_of(context.rank)
        self.local_get_aligned = generation.local_get_aligned
        self.fma_put_is_local = generation.fma_put_is_local
        self.atomics = frozenset(
            (command, size) for command in generation.commands for size in generation.words
        )
        self.registrations_max = values.registrations
        self._wire: HostWire | None = None
        self._far: FarWire | None = None
        self._turn: _Turn | None = None
        self._domain: GniDomain | None = None
        self.awake = False

    def address_of(self, rank: int) -> int:
        """The address of the NIC that a rank has: one for each host, counted from 1."""
        nodes = list(dict.fromkeys(proc.node for proc in self._context.procs))
        return nodes.index(self._context.procs[rank].node) + 1

    def open(self) -> None:
        """Make the rings to the peers of this host, and find a way to other hosts if there are any.

        Before the rank commits what it publishes: peers of other hosts look for it there.
        """
        values, context = self._values, self._context
        self.copy = copy_of(context)
        ranks = len(context.local_procs())
        layout = Layout(ranks, values.registrations, values.ring_slots, values.message_size)
        name = f"nic_gni_{self.generation}"
        try:
            timed = self.clock.runs
            self._wire = HostWire(context, name, layout, values.ring_slots, timed=timed)
        except LinkError as problem:
            raise NicError(f"gni: {problem}") from problem
        if ranks < context.size:
            self._far = FarWire(context, name, values.fabric, values.message_size, self.clock)
        self._probe = show_probe(context, layout, self._wire.words, self.copy)
        self._turn = _Turn(self, context.engine, self._wire, self._far)
        self.wake()

    def domain(self, rank: int, protection_tag: int, cookie: int) -> CommunicationDomain:
        """Join a job's communication domain."""
        if self._wire is None:
            raise NicError(f"{self.identity.name} is not open")
        if self._domain is not None:
            raise NicError(f"{self.identity.name} is in a communication domain already")
        if rank != self._context.rank:
            raise NicError(f"rank {rank} is not the instance of this process")
        if protection_tag >> TAG_BITS or cookie >> COOKIE_BITS:
            raise NicError("a protection tag has 8 bits and a cookie 32")
        job = 1 << (TAG_BITS + COOKIE_BITS) | protection_tag << COOKIE_BITS | cookie
        self._domain = GniDomain(self, self._context, job, self._wire, self._far, self._values)
        return self._domain

    def rest(self) -> None:
        """For the domain: nothing comes from anybody, so no turns are taken."""
        if self._turn is not None and self.awake:
            self.awake = False
            self._context.engine.remove_poller(self._turn)

    def wake(self) -> None:
        """Take turns in each round of the rank's engine."""
        if self._turn is not None and not self.awake:
            self.awake = True
            self._context.engine.add_poller(self._turn)

    def domain_gone(self) -> None:
        """For the domain: it has been given back."""
        self._domain = None

    def progress(self) -> int:
        """Take in what has come. Returns the news there have been, in all."""
        domain = self._domain
        if domain is None:
            return 0
        domain.progress()
        return domain.news

    @property
    def busy(self) -> bool:
        """Whether something is to be tried again soon, though nothing wakes the rank for it."""
        return self._domain is not None and self._domain.busy

    def close(self) -> None:
        """Give everything back."""
        if self._turn is not None:
            self.rest()
            self._turn.end()
            self.copy.forget(self.copy.address_of(self._probe))
        if self._domain is not None:
            self._domain.abandon()
        if self._far is not None:
            self._far.close()
        self._wire = self._far = self._turn = None


class _Turn(Poller):
    """The device's turn in each round of its rank's engine, and whether the rank may sleep."""

    def __init__(
        self, device: GniDevice, engine: Engine, wire: HostWire, far: FarWire | None
    ) -> None:
        self._device = device
        self._engine = engine
        self._wire = wire
        self._far = far
        self._timer: Timer | None = None
        self._seen = 0

    def poll(self) -> int:
        """Take in what has come, for whoever asks next."""
        news, seen = self._device.progress(), self._seen
        self._seen = news
        return max(0, news - seen)  # less when a communication domain has gone

    def arm(self) -> bool:
        """No, when there is something new that the others have not been asked about yet."""
        device = self._device
        if not self._wire.arm() or device.progress() != self._seen:
            return False
        far = self._far.arm() if self._far is not None else True
        if far is False:
            return False
        if (device.busy or far is None) and self._timer is None:
            self._timer = self._engine.call_later(LOOK_AGAIN, self._look)
        return True

    def disarm(self) -> None:
        """Say that it is awake."""
        self._wire.disarm()

    def end(self) -> None:
        """The device is closed."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        """It was woken to look again; the polling that comes with it does."""
        self._timer = None
