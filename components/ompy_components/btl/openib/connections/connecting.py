"""HELLOs over the port's interface.

The datagrams go over the interface of the port itself, so a rail that carries none gets no
connection. When a HELLO goes, and when there were enough without an answer, is decided by
`ompy.frameworks.paths.path_life`.
"""

from __future__ import annotations

from collections.abc import Callable

from ompy.frameworks.context import RankContext
from ompy.frameworks.datagrams import JobDatagrams
from ompy.frameworks.nic.base import LinkState
from ompy.frameworks.nic.verbs import VerbsNic
from ompy.frameworks.paths.path_life import Stage
from ompy.frameworks.proc import Proc

from ompy_components.btl.openib.connections.hello import BadHello, Hello, pack_hello, unpack_hello
from ompy_components.btl.openib.endpoint import OpenibEndpoint


class ConnectionManager:
    """What connects the endpoints of one module.

    Attributes:
        sent, read: HELLOs.
    """

    def __init__(
        self,
        context: RankContext,
        nic: VerbsNic,
        name: str,
        reach: Callable[[Proc], OpenibEndpoint | None],
        note: Callable[..., None],
    ) -> None:
        """Open the socket.

        Args:
            context: the rank.
            nic: the device.
            name: of the sockets that hear each other: the same at both ends of a pair of ports.
            reach: finds the endpoint of a peer.
            note: takes trace events of the module.
        """
        self._nic = nic
        self._reach = reach
        self._note = note
        self._socket = JobDatagrams(context, name, nic.identity.address)
        self.sent = self.read = 0

    # -- HELLOs

    def poll(self) -> int:
        """Read the HELLOs that are here."""
        arrived = self._socket.arrived()
        for proc, data in arrived:
            endpoint = self._reach(proc)
            if endpoint is None:
                continue
            try:
                said = unpack_hello(data)
            except BadHello as problem:
                self._note("BAD_HELLO", peer=proc.rank, reason=str(problem))
                continue
            self.read += 1
            self._hello(endpoint, said)
        return len(arrived)

    def _hello(self, endpoint: OpenibEndpoint, said: Hello) -> None:
        nic = self._nic
        useless = not endpoint.queues and (nic.gone or nic.link is LinkState.DOWN)
        if not (useless or endpoint.proc.departed or endpoint.left):
            endpoint.path.word(said.generation, said.stage, said.pairs)

    def send_hello(self, endpoint: OpenibEndpoint, generation: int, stage: Stage) -> None:
        """Send a HELLO, where queue pairs could be made."""
        pairs = tuple(queue.pair.here() for queue in endpoint.queues)
        if pairs:
            self.sent += 1
            self._socket.send(endpoint.proc, pack_hello(Hello(generation, stage, pairs)))

    @property
    def replayed(self) -> int:
        """Datagrams that were here before, or came too late to tell: dropped unread."""
        return self._socket.replayed

    def ready(self) -> bool:
        """Whether a HELLO is here."""
        return self._socket.ready()

    def close(self) -> None:
        """Give the socket back."""
        self._socket.close()
