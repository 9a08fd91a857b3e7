"""tcp for one rank and one interface: the contract's calls, and the parts that its peers share.

Connections are made when the first fragment wants to go. The module polls one readiness set
for all its sockets, from whoever waits; an idle rank sleeps on that set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.compiled import U64, Shown, ccall, cclass
from ompy.data.convertor import Convertor
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
    SIZE_MAX,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.btl_base.registration import HANDLE_SIZE, RegistrationTable
from ompy.frameworks.btl_base.transfers import RdmaModule
from ompy.frameworks.context import RankContext
from ompy.frameworks.paths.healing import HealingLimits
from ompy.frameworks.paths.path_keeper import PathKeeper
from ompy.frameworks.paths.path_life import Opening
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values
from ompy.net.base import Interface

from ompy_components.btl.tcp.accepting import Limits, PeerListener
from ompy_components.btl.tcp.connecting import Connector
from ompy_components.btl.tcp.endpoint import TcpEndpoint
from ompy_components.btl.tcp.interfaces import Probes, pairs
from ompy_components.btl.tcp.path import TcpPath, connections
from ompy_components.btl.tcp.remote import RemoteMemory
from ompy_components.btl.tcp.resources import Resources
from ompy_components.btl.tcp.silence import SilenceWatch
from ompy_components.btl.tcp.sockets import Sockets
from ompy_components.btl.tcp.traffic import Traffic

if TYPE_CHECKING:
    from ompy.net.base import Listener, Readiness

    from ompy_components.btl.tcp.failover_parts import FailoverParts

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


@cclass
class TcpModule(RdmaModule):
    """The way to every rank over one interface.

    Attributes:
        interface: which.
        listener: where peers connect to.
        traffic: what waits to be sent, and who was last.
        sockets: the connections.
        accepting: where peers come in.
        landing: who is in the middle of receiving into registered memory.
        registered: memory for puts and gets.
        silence: notices that a peer acknowledges nothing.
        failover: what comes with it; None without it.
        keeper: of the paths.
    """

    _connector: Connector
    _endpoints: Shown[dict[int, TcpEndpoint]]
    _free_list_max: int
    _linger: int
    _opening: Opening
    _probes: Probes
    _readiness: Readiness
    _resources: Resources
    _rounds: int
    _values: Values
    accepting: PeerListener
    failover: FailoverParts | None
    interface: Interface
    keeper: PathKeeper
    landing: set[RemoteMemory]
    listener: Listener
    registered: RegistrationTable
    silence: SilenceWatch
    sockets: Sockets
    traffic: Traffic
    __slots__ = tuple(__annotations__)

    def __init__(
        self, context: RankContext, values: Values, interface: Interface, probes: Probes
    ) -> None:
        super().__init__("tcp", context, values, CAPABLE)
        self.registration_handle_size = HANDLE_SIZE
        if interface.bandwidth:
            self.bandwidth = interface.bandwidth
        self.interface = interface
        self._probes = probes
        self._values = values
        self._free_list_max = values.free_list_max
        self._linger = values.linger_ms * MS
        self._endpoints = {}
        self._rounds = 0
        self.failover = None
        timeout: int = values.handshake_timeout_ms * MS
        self._opening = Opening(True, 0, timeout, values.connect_tries, FIRST_PAUSE, PAUSE_MAX)
        self.keeper = PathKeeper(self, self._opening, 0, NEVER)
        self._open(timeout)
        # a registration is an entry in a table, and frames are sent from where their bytes lie
        self.registration_free = True
        self.local_registration_threshold = SIZE_MAX
        if self.flags & FAILOVER_SUPPORT:
            self._acknowledge()

    def _open(self, timeout: int) -> None:
        """Listen, and make the parts that the endpoints share; a handshake may take `timeout` ns.

        Raises:
            LinkError: no port is free.
        """
        context, values, address = self.context, self._values, self.interface.address
        first, count = values.port_min_v4, values.port_range_v4
        ports = range(first, min(first + count, 65536)) if first else (0,)
        self.listener = context.network.listen(address, ports)
        self._readiness = context.network.readiness()
        self.sockets = Sockets(self._readiness, context.engine, self)
        limits = Limits(values.half_open_max, timeout)
        self.accepting = PeerListener(context, self.listener, self.sockets, limits, self._path_to)
        self._connector = Connector(context, address, self.sockets, timeout)
        self.traffic = Traffic()
        self.registered = RegistrationTable(context.rank)
        self.landing = set()
        node, silence = context.me.node, values.silence_ms * MS
        self.silence = SilenceWatch(context.engine, silence, node, self._endpoints)
        self._resources = Resources(
            self.interface,
            self.sockets,
            self.traffic,
            self.registered,
            self.landing,
            context.active_messages.handlers,
            self.silence,
            values.unacknowledged_max,
        )

    @ccall
    def begin_failover(self) -> bool:
        """Acknowledge from now on."""
        self._acknowledge()
        self.keeper.begun = True
        return True

    def _acknowledge(self) -> None:
        if self.failover is None:
            from ompy_components.btl.tcp.failover_parts import FailoverParts

            assert not self._endpoints, "failover begins before the first peer is asked for"
            patience = self._values.ack_timeout_ms * MS
            self.failover = FailoverParts(self, self._resources, self._values, self._link_down)
            self.keeper = PathKeeper(self, self._opening._replace(repeat=patience), patience)
            self.flags |= FAILOVER_SUPPORT
            # a pipeline asks for pieces one by one, and those not asked for go over what is left
            self.registration_free = False
            self.local_registration_threshold = 0

    def _link_down(self) -> None:
        """The interface is of no use: every path over it has failed."""
        for endpoint in list(self._endpoints.values()):
            endpoint.path.broke(f"{endpoint.describe()}: the link is down", final=True)

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
            if self.failover is None:
                made = TcpEndpoint(self, proc, self._resources)
                user = TcpPath(made, self._connector)
            else:
                made, user = self.failover.endpoint(proc, self._connector)
            made.path = self.keeper.keep(made, user)
            self._endpoints[proc.rank] = made
        return self._endpoints[proc.rank]

    def _path_to(self, rank: int) -> TcpPath:
        """What makes the connections to a rank that has proven itself."""
        return connections(self._endpoint(self.context.proc(rank)).path)

    @ccall
    def has_room(self, endpoint: Endpoint) -> bool:
        """While fewer fragments wait than there may be, and fewer are kept for the peer."""
        if 0 <= self._free_list_max <= self.traffic.queued:
            return False
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
        there: TcpEndpoint = endpoint
        return there.send(descriptor, tag)

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
        there: TcpEndpoint = endpoint
        view = convertor.whole()
        if view is None:
            view = memoryview(bytearray(payload_size))
            convertor.pack(0, view)
        if there.send_now(tag, header, view):
            return COMPLETED
        there.open()
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
        return self.registered.register_memory(memory, flags)

    @ccall
    def deregister_mem(self, handle: object) -> None:
        """Let them no longer, and drop what is still coming for it."""
        registration = self.registered.remove(handle)
        for remote in self.landing:
            remote.withdraw(registration)

    @ccall
    def poll(self) -> int:
        """Serve the socket that is likely to be ready, and now and then every one that is."""
        warm: TcpEndpoint | None = self.traffic.warm
        if warm is not None:
            self._rounds += 1
            if self._rounds % WARM_ROUNDS:
                return warm.glance()
        elif not self.sockets.count:
            self.context.engine.poll_seldom(self, seldom=True)
        events: int = 0
        for ready in self._readiness.poll():
            owner = ready.owner
            events += owner.ready(ready.readable, ready.writable)  # type: ignore[attr-defined]
        return events

    @ccall
    def arm(self) -> bool:
        """Sleep only when no socket is ready."""
        return not self._readiness.poll()

    def bytes_to(self) -> dict[int, int]:
        """What the kernel has counted."""
        return {rank: one.totals().sent for rank, one in list(self._endpoints.items())}

    @ccall
    def counters(self) -> dict[str, int]:
        """What the kernel has counted, and which connections there are."""
        endpoint: TcpEndpoint
        sent = received = again = opened = 0
        for endpoint in list(self._endpoints.values()):
            totals = endpoint.totals()
            sent += totals.sent
            received += totals.received
            again += totals.again
            opened += endpoint.is_open()
        return {
            "bytes_sent": sent,
            "bytes_received": received,
            "retransmissions": again,
            "connections": opened,
        }

    def is_up(self, endpoint: Endpoint) -> bool:
        """Its path can be used."""
        assert isinstance(endpoint, TcpEndpoint)
        return bool(endpoint.path.up)

    def peer_gave_up(self, proc: Proc, path: bytes, number: int) -> None:
        """The peer has given up a connection, if the path is one of this module's."""
        here = f"{self.interface.address}:{self.listener.address.port}".encode()
        endpoint = self._endpoints.get(proc.rank)
        if self.failover is not None and endpoint is not None and here in path.split():
            endpoint.path.gave_up(number)

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
        if self.failover is not None:
            self.failover.close()
        self.silence.close()
        self.accepting.close()
        self._readiness.close()

    def _flushed(self) -> bool:
        return all(endpoint.flushed() for endpoint in self._endpoints.values())

    def _settled(self) -> bool:
        return all(endpoint.settled() for endpoint in self._endpoints.values())
