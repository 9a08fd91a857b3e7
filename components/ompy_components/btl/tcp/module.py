"""tcp for one rank and one interface: its listener, its peers, and the unproven at the door.

Connections are made when the first fragment wants to go. The module polls one readiness set
for all its sockets, from whoever waits; an idle rank sleeps on that set.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.compiled import DECLARING, U64, Shown, ccall, cclass
from ompy.data.convertor import Convertor
from ompy.engine.timers import Timer
from ompy.frameworks.btl import (
    COMPLETED,
    FAILOVER_SUPPORT,
    GET,
    HETEROGENEOUS_RDMA,
    NEED_ACK,
    NEED_CSUM,
    NOT_AVAILABLE,
    PUT,
    RDMA_COMPLETION,
    REMOTE_WRITE,
    SEND,
    SEND_INPLACE,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.context import RankContext
from ompy.frameworks.healing import HealingLimits
from ompy.frameworks.path_keeper import PathKeeper
from ompy.frameworks.path_life import Opening
from ompy.frameworks.proc import Proc
from ompy.frameworks.registration import HANDLE_SIZE, RegistrationTable
from ompy.frameworks.sealing import seal_level
from ompy.frameworks.transfers import RdmaModule
from ompy.mca.parameter import Values
from ompy.net.base import Interface, LinkError, Stream
from ompy.net.handshake import (
    NONCE_SIZE,
    REFUSED,
    TAKEN,
    Acceptor,
    HandshakeError,
    Outcome,
)
from ompy.net.proving import attend, sealed

from ompy_components.btl.tcp.endpoint import TcpEndpoint
from ompy_components.btl.tcp.interfaces import Probes, pairs
from ompy_components.btl.tcp.path import TcpPath, connections
from ompy_components.btl.tcp.remote import RemoteMemory

if TYPE_CHECKING:
    from ompy.net.base import Listener, Readiness

    from ompy_components.btl.tcp.acknowledging import FailoverEndpoint
    from ompy_components.btl.tcp.guard import Guard

if DECLARING:
    from ompy.frameworks.btl import ReceiveCallback

# what a module can do; `btl_tcp_flags` says what it is used for
CAPABLE: Final = (
    SEND
    | PUT
    | GET
    | SEND_INPLACE
    | NEED_ACK
    | NEED_CSUM
    | RDMA_COMPLETION
    | HETEROGENEOUS_RDMA
    | FAILOVER_SUPPORT
)


# rounds of polling in which one of them asks the kernel about all sockets; arbitrary: trying one
# socket costs as much, and brings what there is
WARM_ROUNDS: Final = 4
MS: Final = 1_000_000  # ns; Linux counts so
FIRST_PAUSE: Final = 20 * MS  # arbitrary: before the second attempt, doubled each time
PAUSE_MAX: Final = 4_000 * MS  # arbitrary
NEVER: Final = HealingLimits(answers=0)  # a path that broke is not taken back
LOOKS: Final = 5  # arbitrary: how often within `silence_ms` it is looked whether there is one


class Visitor:
    """A connection that has not proven itself.

    Attributes:
        stream: the connection.
        acceptor: its handshake.
        timer: ends its stay.
        taken: by whom, before the peer has heard so.
    """

    __slots__ = ("_owner", "acceptor", "stream", "taken", "timer")

    def __init__(self, owner: TcpModule, stream: Stream, acceptor: Acceptor) -> None:
        self._owner = owner
        self.stream = stream
        self.acceptor = acceptor
        self.taken: TcpPath | None = None
        self.timer = owner.context.engine.call_later(
            owner.handshake_timeout, partial(owner.expel, self)
        )

    def ready(self, readable: bool, writable: bool) -> int:
        """Go on with the handshake."""
        self._owner.attend(self)
        return 1


class Door:
    """The listener, as an owner in the readiness set."""

    __slots__ = ("_owner",)

    def __init__(self, owner: TcpModule) -> None:
        self._owner = owner

    def ready(self, readable: bool, writable: bool) -> int:
        """Let visitors in."""
        return self._owner.admit()


@cclass
class TcpModule(RdmaModule):
    """The way to every rank over one interface.

    Attributes:
        interface: which.
        listener: where peers connect to.
        readiness: all sockets of this module.
        queued: frames waiting in the endpoints' queues.
        handshake_timeout: ns a handshake may take.
        landing: who is in the middle of receiving into registered memory.
        registered: memory for puts and gets.
        warm: the peer that something was sent to or came from last, or None.
        guard: what comes with failover; None without it.
        keeper: of the paths.
    """

    _connect_tries: Shown[int]
    _endpoints: Shown[dict[int, TcpEndpoint]]
    _free_list_max: Shown[int]
    _half_open_max: Shown[int]
    _handlers: list[ReceiveCallback | None]
    _linger: Shown[int]
    _looking: Shown[Timer | None]
    _probes: Shown[Probes]
    _rounds: Shown[int]
    _values: Shown[Values]
    _visitors: Shown[list[Visitor]]
    _watched: Shown[int]
    guard: Guard | None
    handshake_timeout: int
    interface: Interface
    keeper: PathKeeper
    landing: set[RemoteMemory]
    listener: Listener
    queued: int
    readiness: Readiness
    registered: RegistrationTable
    silence: int
    warm: TcpEndpoint | None
    __slots__ = tuple(__annotations__)

    def __init__(
        self, context: RankContext, values: Values, interface: Interface, probes: Probes
    ) -> None:
        super().__init__("tcp", context, values, CAPABLE)
        self.registration_handle_size = HANDLE_SIZE
        if interface.bandwidth:
            self.bandwidth = interface.bandwidth
        self.registered = RegistrationTable(context.rank)
        self.landing = set()
        self.interface = interface
        self._probes = probes
        self.queued = 0
        self.handshake_timeout = values.handshake_timeout_ms * MS
        self._connect_tries = values.connect_tries
        self.silence = values.silence_ms * MS
        self._looking = None
        self._half_open_max = values.half_open_max
        self._free_list_max = values.free_list_max
        self._linger = values.linger_ms * MS
        self._handlers = context.active_messages.handlers
        self._endpoints = {}
        self._visitors = []
        first, count = values.port_min_v4, values.port_range_v4
        ports = range(first, min(first + count, 65536)) if first else (0,)
        self._watched = 0
        self._rounds = 0
        self.warm = None
        self._values = values
        self.guard = None
        self.keeper = self._keeper(0)
        self.listener = context.network.listen(interface.address, ports)
        self.readiness = context.network.readiness()
        self.readiness.add(self.listener, Door(self))
        if self.flags & FAILOVER_SUPPORT:
            self._acknowledge()

    @ccall
    def begin_failover(self) -> bool:
        """Acknowledge from now on."""
        self._acknowledge()
        self.keeper.begun = True
        return True

    def _keeper(self, patience: int) -> PathKeeper:
        """What keeps the paths; `patience` in ns until the agents are asked, 0: they never are."""
        opening = Opening(
            True, patience, self.handshake_timeout, self._connect_tries, FIRST_PAUSE, PAUSE_MAX
        )
        return PathKeeper(self, opening, patience, None if self.guard is not None else NEVER)

    def _acknowledge(self) -> None:
        if self.guard is None:
            from ompy_components.btl.tcp.guard import Guard

            assert not self._endpoints, "failover begins before the first peer is asked for"
            self.guard = Guard(self, self._values)
            self.keeper = self._keeper(self._values.ack_timeout_ms * MS)
            self.flags |= FAILOVER_SUPPORT

    def peers(self) -> list[FailoverEndpoint]:
        """The peers there are, of a module that fails over."""
        return list(self._endpoints.values())  # type: ignore[arg-type]

    @ccall
    def reach(self, proc: Proc) -> Endpoint | None:
        """Every rank that published an address for this interface."""
        endpoint = self._endpoint(proc)
        if endpoint.address is None:
            siblings = [m for m in self.context.btls if isinstance(m, TcpModule)]
            own = [sibling.interface for sibling in siblings]
            found = self._probes.usable(proc, own, pairs(self.context, proc, own))
            endpoint.address = found.get(siblings.index(self))
        return endpoint if endpoint.address is not None else None

    @ccall
    def path(self, endpoint: Endpoint) -> bytes:
        """The addresses that both ends listen at, in an order that is the same at both."""
        assert isinstance(endpoint, TcpEndpoint)
        if endpoint.address is None:
            return b""
        mine = (self.interface.address, self.listener.address.port)
        theirs = (endpoint.address.host, endpoint.address.port)
        return " ".join([f"{host}:{port}" for host, port in sorted([mine, theirs])]).encode()

    def _endpoint(self, proc: Proc) -> TcpEndpoint:
        if proc.rank not in self._endpoints:
            made: TcpEndpoint
            user: TcpPath
            if self.guard is None:
                made = TcpEndpoint(self, proc, None)
                user = TcpPath(self, made)
            else:
                made, user = self.guard.endpoint(proc)
            made.path = self.keeper.keep(made, user)
            self._endpoints[proc.rank] = made
        return self._endpoints[proc.rank]

    @ccall
    def has_room(self, endpoint: Endpoint) -> bool:
        """While fewer fragments wait than there may be, and fewer are kept for the peer."""
        if 0 <= self._free_list_max <= self.queued:
            return False
        if self.guard is None:
            return True
        assert isinstance(endpoint, TcpEndpoint)
        there: TcpEndpoint = endpoint
        return there.has_window()

    @ccall
    def prepare_src(
        self,
        endpoint: Endpoint,
        convertor: Convertor,
        offset: int,
        order: int,
        reserve: int,
        size: int,
        flags: int,
    ) -> Descriptor | None:
        """Refer to contiguous payload in place; copy any other."""
        size = min(size, convertor.size - offset, self.max_send_size - reserve)
        view = convertor.whole()
        inplace: bool = view is not None and size > 0
        descriptor = self.alloc(endpoint, order, reserve if inplace else reserve + size, flags)
        if descriptor is None:
            return None
        if inplace:
            assert view is not None
            descriptor.payload = view[offset : offset + size]
            descriptor.payload_size = size
        elif size > 0:
            descriptor.payload_size = convertor.pack(offset, descriptor.segment[reserve:])
        return descriptor

    @ccall
    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        """Send over the connection."""
        assert isinstance(endpoint, TcpEndpoint)
        return endpoint.send(descriptor, tag)

    @ccall
    def sendi(
        self,
        endpoint: Endpoint,
        convertor: Convertor,
        header: bytes,
        payload_size: int,
        order: int,
        flags: int,
        tag: int,
    ) -> int:
        """Send at once what is small, over a connection that is idle.

        One that is not there yet is opened: the message goes over the next rail, and where all
        are small nothing else would ever open this one.
        """
        assert isinstance(endpoint, TcpEndpoint)
        view = convertor.whole()
        if view is None:
            view = memoryview(bytearray(payload_size))
            convertor.pack(0, view)
        if endpoint.send_now(tag, header, view):
            return COMPLETED
        endpoint.open()
        return NOT_AVAILABLE

    @ccall
    def transfer(
        self, access: int, endpoint: Endpoint, descriptor: Descriptor, identity: U64, offset: U64
    ) -> int:
        """Send it into the peer's memory, or ask for it; complete when the peer has answered."""
        assert isinstance(endpoint, TcpEndpoint)
        move = endpoint.remote.put if access == REMOTE_WRITE else endpoint.remote.get
        return move(identity, offset, descriptor)

    @ccall
    def register_mem(self, endpoint: Endpoint | None, memory: memoryview, flags: int) -> object:
        """Let peers reach the memory."""
        return self.registered.add(memory, flags)

    @ccall
    def deregister_mem(self, handle: object) -> None:
        """Let them no longer, and drop what is still coming for it."""
        registration = self.registered.remove(handle)
        for remote in self.landing:
            remote.withdraw(registration)

    def watch(self, stream: Stream, owner: object) -> None:
        """Serve a connection from now on."""
        self.readiness.add(stream, owner)
        self._watched += 1
        self.context.engine.poll_seldom(self, seldom=False)

    def unwatch(self, stream: Stream) -> None:
        """Serve it no longer. With no connection left, `poll` asks to be called seldom."""
        self.readiness.remove(stream)
        self._watched -= 1

    @ccall
    def poll(self) -> int:
        """Serve the socket that is likely to be ready, and now and then every one that is."""
        if self.warm is not None:
            self._rounds += 1
            if self._rounds % WARM_ROUNDS:
                return self.warm.glance()
        elif not self._watched:
            self.context.engine.poll_seldom(self, seldom=True)
        events: int = 0
        for ready in self.readiness.poll():
            owner = ready.owner
            events += owner.ready(ready.readable, ready.writable)  # type: ignore[attr-defined]
        return events

    @ccall
    def arm(self) -> bool:
        """Sleep only when no socket is ready."""
        return not self.readiness.poll()

    @ccall
    def deliver(self, endpoint: TcpEndpoint, tag: int, fragment: memoryview) -> None:
        """Hand a fragment to whoever registered for its tag."""
        handler: ReceiveCallback | None = self._handlers[tag]
        assert handler is not None, f"nobody registered for tag {tag}"
        handler.received(self, endpoint, tag, fragment)

    def is_up(self, endpoint: Endpoint) -> bool:
        """Its path can be used."""
        assert isinstance(endpoint, TcpEndpoint)
        return bool(endpoint.path.up)

    def peer_gave_up(self, proc: Proc, path: bytes, number: int) -> None:
        """The peer has given up a connection, if the path is one of this module's."""
        here = f"{self.interface.address}:{self.listener.address.port}".encode()
        endpoint = self._endpoints.get(proc.rank)
        if self.guard is not None and endpoint is not None and here in path.split():
            endpoint.path.gave_up(number)

    def look_after(self, endpoint: TcpEndpoint) -> None:
        """Notice when the way to a peer on another host dies without a word."""
        elsewhere = endpoint.proc.node != self.context.me.node
        watched = bool(self.silence) and elsewhere and endpoint.ask_when_idle()
        if watched and self._looking is None:
            self._look_again()

    def _look_again(self) -> None:
        self._looking = self.context.engine.call_later(self.silence // LOOKS, self._look)

    def _look(self) -> None:
        now = self.context.engine.now()
        connected = [endpoint.look(now) for endpoint in list(self._endpoints.values())]
        self._looking = None
        if any(connected):
            self._look_again()

    # -- the door

    def admit(self) -> int:
        """Accept who connects; the oldest unproven one goes when there are too many."""
        stream = self.listener.accept()
        if stream is None:
            return 0
        context = self.context
        nonce = context.network.entropy(NONCE_SIZE)
        acceptor = Acceptor(
            context.job_key,
            context.job_id,
            context.rank,
            context.size,
            nonce,
            seal_of=lambda rank: seal_level(context, context.procs[rank]),
        )
        visitor = Visitor(self, stream, acceptor)
        self._visitors.append(visitor)
        self.watch(stream, visitor)
        if len(self._visitors) > self._half_open_max:
            self.expel(self._visitors[0])
        return 1

    def attend(self, visitor: Visitor) -> None:
        """Go on with a visitor's handshake."""
        try:
            stays = attend(visitor.acceptor, visitor.stream, partial(self._decide, visitor))
        except (LinkError, HandshakeError):
            stays = False  # a stranger: nothing to tell anybody
        if stays:
            self._conclude(visitor)
        else:
            self.expel(visitor)

    def _decide(self, visitor: Visitor) -> None:
        endpoint = self._endpoint(self.context.procs[visitor.acceptor.peer])
        taken = connections(endpoint.path).offered(visitor)
        if visitor not in self._visitors:
            raise LinkError("it was given up as soon as it was taken")
        visitor.acceptor.decide(TAKEN if taken else REFUSED)

    def _conclude(self, visitor: Visitor) -> None:
        """A verdict that was sent whole takes effect."""
        acceptor = visitor.acceptor
        if acceptor.outgoing:
            self.readiness.want_write(visitor.stream, wanted=True)
        elif acceptor.outcome is Outcome.REFUSED:
            self.expel(visitor)
        elif acceptor.outcome is Outcome.TAKEN:
            self._visitors.remove(visitor)
            visitor.timer.cancel()
            self.unwatch(visitor.stream)
            assert visitor.taken is not None, "who gives it up expels the visitor"
            key = self.context.job_key
            visitor.taken.heard(sealed(acceptor, key, visitor.stream, self.readiness))
        else:
            self.readiness.want_write(visitor.stream, wanted=False)

    def expel(self, visitor: Visitor) -> None:
        """Close a connection that has not proven itself; harmless when it is gone already."""
        if visitor in self._visitors:
            self._visitors.remove(visitor)
            visitor.timer.cancel()
            self.unwatch(visitor.stream)
            visitor.stream.close()
            if visitor.taken is not None:
                visitor.taken.endpoint.lose("the peer closed the connection during the handshake")

    # -- the end

    @ccall
    def finalize(self) -> None:
        """Send everything queued, say BYE to every peer, and wait a little for theirs."""
        engine = self.context.engine
        self.keeper.ending()
        engine.wait_until(self._flushed)
        for endpoint in self._endpoints.values():
            endpoint.say_bye()
        engine.wait_until(self._flushed)
        engine.wait_until(self._settled, self._linger)
        for endpoint in self._endpoints.values():
            endpoint.close()
        self.keeper.close()
        if self.guard is not None:
            self.guard.close()
        if self._looking is not None:
            self._looking.cancel()
        for visitor in list(self._visitors):
            self.expel(visitor)
        self.readiness.remove(self.listener)
        self.listener.close()
        self.readiness.close()

    def _flushed(self) -> bool:
        return all(endpoint.flushed() for endpoint in self._endpoints.values())

    def _settled(self) -> bool:
        return all(endpoint.settled() for endpoint in self._endpoints.values())
