"""What a module knows of all its connections at once: how much waits, and who was last."""

from __future__ import annotations

from ompy.compiled import DECLARING, cclass, cfunc

if DECLARING:
    from ompy_components.btl.tcp.endpoint import TcpEndpoint


@cclass
class Traffic:
    """Of one module.

    Attributes:
        queued: frames waiting in the endpoints' queues.
        warm: the peer that something was sent to or came from last, or None.
    """

    queued: int
    warm: TcpEndpoint | None
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self.queued = 0
        self.warm = None

    @cfunc
    def joined(self) -> None:
        """One more frame waits."""
        self.queued += 1

    @cfunc
    def left(self, frames: int) -> None:
        """So many wait no longer."""
        self.queued -= frames

    @cfunc
    def used(self, endpoint: TcpEndpoint) -> None:
        """Something was sent to this peer, or came from it."""
        self.warm = endpoint

    @cfunc
    def closed(self, endpoint: TcpEndpoint) -> None:
        """This peer has no connection any more."""
        if self.warm is endpoint:
            self.warm = None
