"""The listener of a module, and the unproven at its door: connections that peers begin."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ompy.frameworks.sealing import seal_level
from ompy.net.base import LinkError, Stream
from ompy.net.handshake import (
    NONCE_SIZE,
    REFUSED,
    TAKEN,
    Acceptor,
    HandshakeError,
    Outcome,
)
from ompy.net.proving import attend, sealed

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


class Visitor:
    """A connection that has not proven itself.

    Attributes:
        stream: the connection.
        acceptor: its handshake.
        timer: ends its stay.
        taken: by whom, before the peer has heard so.
    """

    __slots__ = ("_door", "acceptor", "stream", "taken", "timer")

    def __init__(self, door: Door, stream: Stream, acceptor: Acceptor) -> None:
        self._door = door
        self.stream = stream
        self.acceptor = acceptor
        self.taken: TcpPath | None = None
        self.timer = door.stay(self)

    def ready(self, readable: bool, writable: bool) -> int:
        """Go on with the handshake."""
        self._door.attend(self)
        return 1

    def taken_by(self, path: TcpPath | None) -> None:
        """A path wants the connection when the peer has heard so; None: it wants it no more."""
        self.taken = path

    def expel(self) -> None:
        """Close it."""
        self._door.expel(self)


class Door:
    """Of one module.

    Attributes:
        visitors: connections that have not proven themselves, the oldest first.
    """

    __slots__ = ("_context", "_limits", "_listener", "_path_to", "_sockets", "visitors")

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
        self.visitors: list[Visitor] = []
        sockets.readiness.add(listener, self)

    def ready(self, readable: bool, writable: bool) -> int:
        """Accept who connects; the oldest unproven one goes when there are too many."""
        stream = self._listener.accept()
        if stream is None:
            return 0
        context = self._context
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
        self.visitors.append(visitor)
        self._sockets.watch(stream, visitor)
        if len(self.visitors) > self._limits.half_open:
            self.expel(self.visitors[0])
        return 1

    def stay(self, visitor: Visitor) -> Timer:
        """Begin the time that a visitor has."""
        return self._context.engine.call_later(self._limits.timeout, partial(self.expel, visitor))

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
        taken = self._path_to(visitor.acceptor.peer).offered(visitor)
        if visitor not in self.visitors:
            raise LinkError("it was given up as soon as it was taken")
        visitor.acceptor.decide(TAKEN if taken else REFUSED)

    def _conclude(self, visitor: Visitor) -> None:
        """A verdict that was sent whole takes effect."""
        acceptor, sockets = visitor.acceptor, self._sockets
        if acceptor.outgoing:
            sockets.readiness.want_write(visitor.stream, wanted=True)
        elif acceptor.outcome is Outcome.REFUSED:
            self.expel(visitor)
        elif acceptor.outcome is Outcome.TAKEN:
            self._let_go(visitor)
            assert visitor.taken is not None, "who gives it up expels the visitor"
            key = self._context.job_key
            visitor.taken.heard(sealed(acceptor, key, visitor.stream, sockets.readiness))
        else:
            sockets.readiness.want_write(visitor.stream, wanted=False)

    def expel(self, visitor: Visitor) -> None:
        """Close a connection that has not proven itself; harmless when it is gone already."""
        if visitor in self.visitors:
            self._let_go(visitor)
            visitor.stream.close()
            if visitor.taken is not None:
                visitor.taken.offer_failed()

    def _let_go(self, visitor: Visitor) -> None:
        self.visitors.remove(visitor)
        visitor.timer.cancel()
        self._sockets.unwatch(visitor.stream)

    def close(self) -> None:
        """The module ends."""
        for visitor in list(self.visitors):
            self.expel(visitor)
        self._sockets.readiness.remove(self._listener)
        self._listener.close()
