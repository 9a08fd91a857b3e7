"""The listener of a module, and half-open connections: begun by peers, and not proven yet."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ompy.frameworks.btl_base.sealing import seal_level
from ompy.net.base import LinkError, Stream
from ompy.net.seals.handshake import (
    ANY_RANK,
    NONCE_SIZE,
    REFUSED,
    TAKEN,
    Acceptor,
    HandshakeError,
    Outcome,
)
from ompy.net.seals.proving import attend, sealed

if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy.engine.timers import Timer
    from ompy.frameworks.context import RankContext
    from ompy.net.base import Listener

    from ompy_components.btl.tcp.path import TcpPath
    from ompy_components.btl.tcp.sockets import Sockets


class Limits(NamedTuple):
    """What the unproven may take.

    Attributes:
        half_open: of them at a time.
        timeout: ns a handshake may take.
    """

    half_open: int
    timeout: int


class HalfOpen:
    """A connection that has not proven itself.

    Attributes:
        stream: the connection.
        acceptor: its handshake.
        timer: rejects it when it takes too long.
        taken: by whom, before the peer has heard so.
    """

    __slots__ = ("_accepting", "acceptor", "stream", "taken", "timer")

    def __init__(self, accepting: PeerListener, stream: Stream, acceptor: Acceptor) -> None:
        self._accepting = accepting
        self.stream = stream
        self.acceptor = acceptor
        self.taken: TcpPath | None = None
        self.timer = accepting.begin_timeout(self)

    def ready(self, readable: bool, writable: bool) -> int:
        """Go on with the handshake."""
        self._accepting.continue_handshake(self)
        return 1

    def taken_by(self, path: TcpPath | None) -> None:
        """A path wants the connection when the peer has heard so; None: it wants it no more."""
        self.taken = path

    def reject(self) -> None:
        """Close it."""
        self._accepting.reject(self)


class PeerListener:
    """Of one module.

    Attributes:
        half_open: connections that have not proven themselves, the oldest first.
    """

    __slots__ = ("_context", "_limits", "_listener", "_path_to", "_sockets", "half_open")

    def __init__(
        self,
        context: RankContext,
        listener: Listener,
        sockets: Sockets,
        limits: Limits,
        path_to: Callable[[int], TcpPath],
    ) -> None:
        """Let in who connects to `listener`; `path_to` finds the path to a rank that is proven."""
        self._context = context
        self._listener = listener
        self._sockets = sockets
        self._limits = limits
        self._path_to = path_to
        self.half_open: list[HalfOpen] = []
        sockets.readiness.add(listener, self)

    def ready(self, readable: bool, writable: bool) -> int:
        """Accept who connects; the oldest unproven one goes when there are too many."""
        stream = self._listener.accept()
        if stream is None:
            return 0
        stream.carries("btl.tcp")
        context = self._context
        nonce = context.network.entropy(NONCE_SIZE)
        acceptor = Acceptor(
            context.job_key,
            context.job_id,
            context.rank,
            ANY_RANK if context.expects_others else context.size,
            nonce,
            seal_of=lambda rank: seal_level(context, context.proc(rank)),
        )
        incoming = HalfOpen(self, stream, acceptor)
        self.half_open.append(incoming)
        self._sockets.watch(stream, incoming)
        if len(self.half_open) > self._limits.half_open:
            self.reject(self.half_open[0])
        return 1

    def begin_timeout(self, incoming: HalfOpen) -> Timer:
        """Begin the time that a handshake has."""
        return self._context.engine.call_later(self._limits.timeout, partial(self.reject, incoming))

    def continue_handshake(self, incoming: HalfOpen) -> None:
        """Go on with a handshake."""
        try:
            stays = attend(incoming.acceptor, incoming.stream, partial(self._decide, incoming))
        except (LinkError, HandshakeError):
            stays = False  # a stranger: nothing to tell anybody
        if stays:
            self._conclude(incoming)
        else:
            self.reject(incoming)

    def _decide(self, incoming: HalfOpen) -> None:
        taken = self._path_to(incoming.acceptor.peer).offered(incoming)
        if incoming not in self.half_open:
            raise LinkError("it was given up as soon as it was taken")
        incoming.acceptor.decide(TAKEN if taken else REFUSED)

    def _conclude(self, incoming: HalfOpen) -> None:
        """A verdict that was sent whole takes effect."""
        acceptor, sockets = incoming.acceptor, self._sockets
        if acceptor.outgoing:
            sockets.readiness.want_write(incoming.stream, wanted=True)
        elif acceptor.outcome is Outcome.REFUSED:
            self.reject(incoming)
        elif acceptor.outcome is Outcome.TAKEN:
            self._release(incoming)
            assert incoming.taken is not None, "who gives it up rejects it"
            key = self._context.job_key
            incoming.taken.heard(sealed(acceptor, key, incoming.stream, sockets.readiness))
        else:
            sockets.readiness.want_write(incoming.stream, wanted=False)

    def reject(self, incoming: HalfOpen) -> None:
        """Close a connection that has not proven itself; harmless when it is gone already."""
        if incoming in self.half_open:
            self._release(incoming)
            incoming.stream.close()
            if incoming.taken is not None:
                incoming.taken.offer_failed()

    def _release(self, incoming: HalfOpen) -> None:
        self.half_open.remove(incoming)
        incoming.timer.cancel()
        self._sockets.unwatch(incoming.stream)

    def close(self) -> None:
        """The module ends."""
        for incoming in list(self.half_open):
            self.reject(incoming)
        self._sockets.readiness.remove(self._listener)
        self._listener.close()
