"""What a module that fails over does besides sending: acknowledgements, its link, paths' tails.

When paths are doubted, given up and taken back is the business of `ompy.frameworks.path_keeper`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.frameworks.bml import has_spare
from ompy.mca.parameter import Values
from ompy.net.base import LinkNews, Stream

from ompy_components.btl.tcp.acknowledging import Acknowledger, FailoverEndpoint
from ompy_components.btl.tcp.path import TcpPath

if TYPE_CHECKING:
    from ompy.frameworks.proc import Proc

    from ompy_components.btl.tcp.module import TcpModule

US: Final = 1_000  # ns; Linux counts so
# attempts to make a first connection while another rail leads to the peer. Arbitrary: 140 ms, in
# which a listener whose queue was full has room again; what waits goes over the other rail then,
# and this one is taken back when it works
SPARED_TRIES: Final = 4
NUMBER_SIZE: Final = 4  # bytes of a nonce that are the connection's number


class FailoverPath(TcpPath):
    """Of an endpoint that acknowledges: an offer says its number, a broken path has a tail."""

    __slots__ = ("_there",)

    def __init__(self, module: TcpModule, endpoint: FailoverEndpoint) -> None:
        super().__init__(module, endpoint)
        self._there = endpoint

    def waits(self) -> bool:
        """Something was sent that is not acknowledged, or asked for that is not here."""
        return self._there.waits()

    def progress(self) -> object:
        """What was acknowledged, and how often something has come."""
        return self._there.acked, self._there.news

    def open_ended(self) -> bool:
        """Something will be completed badly, or given back."""
        return bool(self._there.kept) or not self._there.remote.idle

    def stop(self, reason: str) -> None:
        """What was acknowledged is complete first; a kernel is not to go on with what was not."""
        there = self._there
        there.last_words()
        if there.up and (self.open_ended() or not there.leaving):
            there.abandon_stream()
        self.end_attempts(abandon=bool(there.path.broken))
        there.drop_stream()

    def goes_elsewhere(self) -> bool:
        """Another rail leads to the peer."""
        tries = self.endpoint.path.life.tries
        return tries + 1 >= SPARED_TRIES and has_spare(self.endpoint.proc)

    def number_of(self, nonce: bytes) -> int:
        """As the peer has begun it."""
        return int.from_bytes(nonce[:NUMBER_SIZE], "little")

    def nonce(self, number: int) -> bytes:
        """With the number in front."""
        return number.to_bytes(NUMBER_SIZE, "little") + super().nonce(number)[NUMBER_SIZE:]


class Guard:
    """Of one module.

    Attributes:
        acknowledger: sends the acknowledgements that nothing carries.
    """

    def __init__(self, module: TcpModule, values: Values) -> None:
        self._module = module
        self._context = module.context
        self._chunk = values.put_chunk
        self._unsent_max = values.unsent_max
        self._link = None if module.interface.loopback else self._listen()
        engine = self._context.engine
        self.acknowledger = Acknowledger(
            engine, values.ack_delay_us * US, values.ack_bytes, values.unacknowledged_max
        )
        engine.add_poller(self.acknowledger)

    def _listen(self) -> LinkNews | None:
        news = self._context.network.link_news(self._module.interface.name)
        if news is not None:
            self._module.readiness.add(news, self)
        return news

    def ready(self, readable: bool, writable: bool) -> int:
        """There is news of some link; without ours every path has failed, as the NIC says."""
        if not self.unplugged():
            return 0
        for endpoint in self._module.peers():
            why = f"{endpoint.describe()}: the link is down"
            endpoint.path.broke(why, final=True)
        return 1

    def unplugged(self) -> bool:
        """Whether the module's own interface is known to be down or without a carrier."""
        return self._link is not None and self._link.down()

    def endpoint(self, proc: Proc) -> tuple[FailoverEndpoint, FailoverPath]:
        """A peer that acknowledges, and what makes its connections."""
        made = FailoverEndpoint(self._module, proc, self)
        return made, FailoverPath(self._module, made)

    def chunk_of(self, endpoint: FailoverEndpoint) -> int:
        """Bytes of a put that go in one frame; 0 for all.

        Over the last of several rails, too: what follows from the loss of the others must not wait.
        """
        kind = type(self._module)
        several = sum(isinstance(one, kind) for one in self._context.btls) > 1
        return self._chunk if several or has_spare(endpoint.proc) else 0

    def prepare(self, stream: Stream) -> None:
        """A connection is there: what is said about another one must not wait long in it."""
        if self._unsent_max and not self._module.interface.loopback:
            stream.hold_unsent(self._unsent_max)

    def close(self) -> None:
        """Every endpoint is closed."""
        if self._link is not None:
            self._module.readiness.remove(self._link)
            self._link.close()
        self._context.engine.remove_poller(self.acknowledger)
