"""An attempt to connect: a stream of our own, up to the peer's verdict. One object, one attempt.

It tells its `TcpPath` how it ended, once, and nothing else: whether there is another attempt is the
business of the path's life.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ompy.frameworks.btl_base.sealing import seal_level
from ompy.net.base import WOULD_BLOCK, LinkError, Stream
from ompy.net.seals.handshake import HandshakeError, Initiator, Outcome
from ompy.net.seals.proving import hear, sealed, send_proof

if TYPE_CHECKING:
    from ompy.engine.timers import Timer
    from ompy.frameworks.context import RankContext
    from ompy.frameworks.proc import Proc
    from ompy.net.base import Address

    from ompy_components.btl.tcp.path import TcpPath
    from ompy_components.btl.tcp.sockets import Sockets

REFUSED = "the peer is connecting to us at the same time"
NO_ADDRESS = "it is not known where the peer listens"  # the peer has always connected to us


class Connector(NamedTuple):
    """What attempts to connect are made with.

    Attributes:
        context: the rank's.
        own: address to connect from.
        sockets: of the module.
        timeout: ns a handshake may take.
    """

    context: RankContext
    own: str
    sockets: Sockets
    timeout: int


class Attempt:
    """The initiator's side of a handshake."""

    __slots__ = ("_connector", "_initiator", "_path", "_proc", "_stream", "_timer")

    def __init__(self, path: TcpPath, proc: Proc, connector: Connector) -> None:
        self._path = path
        self._proc = proc
        self._connector = connector
        self._initiator: Initiator | None = None
        self._stream: Stream | None = None
        self._timer: Timer | None = None

    def begin(self, address: Address | None, nonce: bytes) -> None:
        """Connect. The path may hear within this call that nothing came of it."""
        context, own, sockets, timeout = self._connector
        proc = self._proc
        if address is None:
            self._path.failed(self, NO_ADDRESS)
            return
        try:
            stream = context.network.connect(address, own)
        except LinkError as problem:
            self._path.failed(self, str(problem))
            return
        stream.carries("btl.tcp")
        stream.belongs_to(proc.rank)
        seal = seal_level(context, proc)
        key, job, rank = context.job_key, context.job_id, context.rank
        self._stream = stream
        self._initiator = Initiator(key, job, rank, proc.rank, nonce, seal=seal)
        sockets.watch(stream, self)
        sockets.readiness.want_write(stream, wanted=True)
        no_answer = partial(self._path.failed, self, "no answer")
        self._timer = context.engine.call_later(timeout, no_answer)

    def ready(self, readable: bool, writable: bool) -> int:
        """Go on with the handshake, unless it was given up since the sockets were asked."""
        if self._stream is None:
            return 0
        why = self._shake()
        if why:
            self._path.failed(self, why)
        return 1

    def _shake(self) -> str:
        """Returns why there will be no connection; empty: there may be, or is."""
        stream, initiator = self._stream, self._initiator
        assert stream is not None
        assert initiator is not None
        try:
            if initiator.outgoing:
                send_proof(initiator, stream)
                if not initiator.outgoing:
                    # The peer's kernel has it. A rank that computes answers when it polls, and a
                    # connection it may have taken by then must not be given up.
                    self._no_timer()
            while initiator.outcome is Outcome.UNDER_WAY:
                count = hear(initiator, stream)
                if count == WOULD_BLOCK:
                    break
                if count == 0:
                    return "the peer closed the connection during the handshake"
                send_proof(initiator, stream)
        except (LinkError, HandshakeError) as problem:
            return str(problem)
        if initiator.outcome is Outcome.REFUSED:
            return REFUSED
        sockets = self._connector.sockets
        if initiator.outcome is Outcome.TAKEN:
            self._no_timer()
            sockets.unwatch(stream)
            self._stream = None
            key = self._connector.context.job_key
            self._path.made(sealed(initiator, key, stream, sockets.readiness))
        else:
            sockets.readiness.want_write(stream, wanted=bool(initiator.outgoing))
        return ""

    def _no_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end(self, *, abandon: bool = False) -> None:
        """Give it up, if it is still going on.

        Args:
            abandon: the kernel is not to go on with it either.
        """
        self._no_timer()
        stream, self._stream = self._stream, None
        if stream is not None:
            if abandon:
                stream.abandon()
            self._connector.sockets.unwatch(stream)
            stream.close()
