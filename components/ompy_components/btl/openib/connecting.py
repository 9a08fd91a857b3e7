"""Makes connections: HELLOs over the port's interface, queue pairs, and when to stop trying.

The datagrams go over the interface of the port itself, so a rail that carries none gets no
connection. A HELLO without an answer is repeated. A peer that computes answers nothing, so
repetitions count as tries only while the hosts' agents do not say that the path is alive
(ARCHITECTURE.md, "Whether a rail is dead").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.frameworks.datagrams import JobDatagrams
from ompy.frameworks.nic.base import LinkState, NicError
from ompy.frameworks.nic.verbs import QueuePair
from ompy.frameworks.nic.verbs import State as PairState
from ompy.frameworks.paths import PathVerdict

from ompy_components.btl.openib.connection import BadHello, Hello, Step, pack, unpack
from ompy_components.btl.openib.credits import PeerCredits
from ompy_components.btl.openib.endpoint import Queue
from ompy_components.btl.openib.receive_buffers import PeerBuffers
from ompy_components.btl.openib.receive_queues import PerPeer
from ompy_components.btl.openib.states import State

if TYPE_CHECKING:
    from ompy_components.btl.openib.endpoint import OpenibEndpoint
    from ompy_components.btl.openib.module import OpenibModule

TRANSFERS: Final = 64  # arbitrary: puts and gets of one endpoint in the device's hands
US: Final = 1000  # ns; Linux counts so


class ConnectionManager:
    """What connects the endpoints of one module.

    Attributes:
        counted: HELLOs sent and read.
    """

    def __init__(self, module: OpenibModule, name: str, timeout_us: int, tries: int) -> None:
        """Open the socket.

        Args:
            module: whose.
            name: of the sockets that hear each other: the same at both ends of a pair of ports.
            timeout_us: until a HELLO is repeated.
            tries: repetitions without an answer that end an attempt.
        """
        self._module = module
        self._timeout = timeout_us * US
        self._tries = tries
        self._socket = JobDatagrams(module.context, name, module.nic.identity.address)
        self._unsettled: dict[OpenibEndpoint, None] = {}
        self.sent = self.read = 0

    # -- asked

    def begin(self, endpoint: OpenibEndpoint) -> None:
        """Something is to be sent: connect, unless that is under way."""
        if endpoint.connection.state is not State.CLOSED:
            return
        nic = self._module.nic
        if nic.gone or (nic.link is LinkState.DOWN and self._module.failing_over):
            self._module.failover.condemn(endpoint, nic.gone or "the port is down")
            return
        endpoint.tries = 0
        self._act(endpoint, endpoint.connection.want())

    def heard(self, endpoint: OpenibEndpoint) -> None:
        """Something came through a queue pair or a ring."""
        if endpoint.connection.state in (State.CONNECT_ACK, State.WAITING_ACK):
            self._act(endpoint, endpoint.connection.data())

    def poll(self) -> int:
        """Read the HELLOs that are here, repeat those that are due."""
        arrived = self._socket.arrived()
        for proc, data in arrived:
            endpoint = self._module.reach(proc)
            if endpoint is None:
                continue
            try:
                said = unpack(data)
            except BadHello as problem:
                self._module.note("BAD_HELLO", peer=proc.rank, reason=str(problem))
                continue
            self.read += 1
            self._hello(endpoint, said)
        return len(arrived)

    @property
    def replayed(self) -> int:
        """Datagrams that were here before, or came too late to tell: dropped unread."""
        return self._socket.replayed

    def ready(self) -> bool:
        """Whether a HELLO is here."""
        return self._socket.ready()

    def expire(self, now: int) -> int | None:
        """Repeat what is due. Returns when the next one is, or None."""
        due: int | None = None
        for endpoint in list(self._unsettled):
            if not endpoint.connection.unsettled:
                self._settled(endpoint)
                continue
            if now >= endpoint.hello_due:
                self._repeat(endpoint, now)
            if endpoint.connection.unsettled:
                due = endpoint.hello_due if due is None else min(due, endpoint.hello_due)
        return due

    def forget(self, endpoint: OpenibEndpoint) -> None:
        """The attempt, or the connection, is over."""
        self._settled(endpoint)

    def close(self) -> None:
        """Give the socket back."""
        for endpoint in list(self._unsettled):
            self._settled(endpoint)
        self._socket.close()

    # -- HELLOs

    def _hello(self, endpoint: OpenibEndpoint, said: Hello) -> None:
        fatal = endpoint.broken and not self._module.failing_over  # it was said to be for good
        if endpoint.proc.departed or endpoint.left or fatal:
            return
        fresh = endpoint.connection.state is State.CLOSED
        if fresh and (self._module.nic.gone or self._module.nic.link is LinkState.DOWN):
            return
        if fresh and self._module.failover.leaves_alone(endpoint):
            return
        steps = endpoint.connection.hello(said)
        if fresh:
            endpoint.tries = 0
        self._act(endpoint, steps)

    def _repeat(self, endpoint: OpenibEndpoint, now: int) -> None:
        verdict = endpoint.watch.verdict if endpoint.watch is not None else PathVerdict.UNKNOWN
        if verdict is not PathVerdict.ALIVE:
            endpoint.tries += 1
        dead = verdict is PathVerdict.DEAD
        if dead or endpoint.tries > self._tries:
            reason = endpoint.watch.why if dead and endpoint.watch is not None else "no answer"
            own = endpoint.identity
            self._module.failover.fail(
                endpoint,
                f"no connection over {own.interface} from {own.address} to "
                f"{endpoint.record.host}: {reason}",
            )
            return
        if endpoint.watch is None:
            self._watch(endpoint)
        self._say(endpoint)
        endpoint.hello_due = now + self._timeout

    def _watch(self, endpoint: OpenibEndpoint) -> None:
        module = self._module
        own = endpoint.identity
        endpoint.watch = module.context.paths.watch(
            endpoint.proc,
            own.address,
            endpoint.record.host,
            own.interface,
            module.wake,
            failover=module.failing_over,
        )

    def _say(self, endpoint: OpenibEndpoint) -> None:
        pairs = [queue.pair.here() for queue in endpoint.queues]
        self.sent += 1
        self._socket.send(endpoint.proc, pack(endpoint.connection.say(pairs)))

    def _settled(self, endpoint: OpenibEndpoint) -> None:
        self._unsettled.pop(endpoint, None)
        endpoint.hello_due = 0
        if endpoint.watch is not None:
            endpoint.watch.end()
            endpoint.watch = None

    # -- what is to be done

    def _act(self, endpoint: OpenibEndpoint, steps: list[Step]) -> None:
        module = self._module
        try:
            for step in steps:
                if step is Step.MAKE:
                    self._make(endpoint)
                    self._unsettled[endpoint] = None
                    endpoint.hello_due = module.context.engine.now() + self._timeout
                    module.wake()
                elif step is Step.CONNECT:
                    self._connect(endpoint)
                elif step is Step.SAY:
                    self._say(endpoint)
                elif step is Step.READY:
                    self._settled(endpoint)
                    module.note("CONNECTED", peer=endpoint.proc.rank)
                    module.failover.connected(endpoint)
                    module.sending.connected(endpoint)
                elif step is Step.FAIL:
                    module.failover.fail(
                        endpoint, "the peer has given the connection up", tell_peer=False
                    )
        except NicError as problem:
            module.failover.condemn(endpoint, str(problem))

    def _make(self, endpoint: OpenibEndpoint) -> None:
        """The queue pairs of an endpoint, in INIT and with their buffers."""
        module = self._module
        assert not endpoint.queues
        for index, entry in enumerate(module.entries):
            size, room = module.buffer_size(entry), module.rooms[index]
            shared = module.shared[index]
            depth = entry.num + entry.rsv if isinstance(entry, PerPeer) else entry.sd_max
            pair = module.domain.queue_pair(
                room.queue,
                room.queue,
                send_depth=depth,
                receive_depth=depth if shared is None else 0,
                shared=shared.queue if shared is not None else None,
                inline_max=module.inline_max,
            )
            queue = Queue(pair, room)
            endpoint.queues.append(queue)
            module.receiving.by_number[pair.number] = endpoint, index
            pair.modify(PairState.INIT)
            queue.tokens = module.tokens[index]
            if isinstance(entry, PerPeer):
                queue.credits = PeerCredits(entry)
                queue.buffers = PeerBuffers(module.domain, entry, size, room, pair)
        for index in (len(module.entries), len(module.entries) + 1):
            queue = Queue(self.transfer_pair(endpoint, index), module.rooms[-1])
            endpoint.queues.append(queue)

    def transfer_pair(self, endpoint: OpenibEndpoint, index: int) -> QueuePair:
        """A queue pair for puts and gets of one end, in INIT."""
        module = self._module
        queue = module.rooms[-1].queue
        pair = module.domain.queue_pair(queue, queue, send_depth=TRANSFERS)
        module.receiving.by_number[pair.number] = endpoint, index
        pair.modify(PairState.INIT)
        return pair

    def _connect(self, endpoint: OpenibEndpoint) -> None:
        """Connect ours to the peer's."""
        theirs = endpoint.connection.pairs
        if len(theirs) != len(endpoint.queues):
            raise NicError(f"the peer has {len(theirs)} queue pairs, we {len(endpoint.queues)}")
        limits = self._module.limits
        for queue, there in zip(endpoint.queues, theirs, strict=True):
            timing = limits.timing(shared=queue.credits is None)
            queue.pair.modify(PairState.RTR, there=there, timing=timing)
            queue.pair.modify(PairState.RTS, timing=timing)
