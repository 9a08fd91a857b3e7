"""A domain's listener, and connections that peers begin and have not proven."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final

from ompy.frameworks.btl_base.sealing import seal_level
from ompy.net.base import Address, LinkError, Stream
from ompy.net.seals.handshake import (
    MAGIC_SIZE,
    NONCE_SIZE,
    TAKEN,
    Acceptor,
    HandshakeError,
    Outcome,
)
from ompy.net.seals.proving import attend, sealed

if TYPE_CHECKING:
    from ompy.engine.base import Engine
    from ompy.net.base import Readiness

    from ompy_components.nic.ofi_emulated.resources import Resources

MAGIC: Final = b"ompyofi2"
assert len(MAGIC) == MAGIC_SIZE
EPOCH: Final = Struct("<I")
HALF_OPEN_MAX: Final = 64  # arbitrary, as btl/tcp's: more than ranks connect at the same moment


def nonce_of(epoch: int, chance: bytes) -> bytes:
    """A nonce that also says which epoch of the path a connection belongs to."""
    return EPOCH.pack(epoch) + chance[EPOCH.size :]


class HalfOpen:
    """A connection that has not proven itself.

    Attributes:
        stream: the connection.
    """

    __slots__ = ("_accepting", "_acceptor", "_readiness", "_timer", "stream")

    def __init__(
        self,
        accepting: PeerListener,
        stream: Stream,
        acceptor: Acceptor,
        readiness: Readiness,
        engine: Engine,
        timeout: int,
    ) -> None:
        """Wait for its proof.

        Args:
            accepting: that takes or rejects it.
            stream: the connection.
            acceptor: of its handshake.
            readiness: that the connection is one of.
            engine: of the rank.
            timeout: ns that it has to prove itself.
        """
        self._accepting = accepting
        self._acceptor = acceptor
        self._readiness = readiness
        self._timer = engine.call_later(timeout, partial(accepting.reject, self))
        self.stream = stream

    def ready(self, readable: bool, writable: bool) -> None:
        """Go on with the handshake."""
        acceptor, stream = self._acceptor, self.stream
        try:
            stays = attend(acceptor, stream, partial(acceptor.decide, TAKEN))
        except (LinkError, HandshakeError):
            stays = False  # a stranger: nothing to tell anybody
        if not stays:
            self._accepting.reject(self)
        elif acceptor.outcome is Outcome.TAKEN and not acceptor.outgoing:
            self._accepting.establish(self, acceptor)
        else:
            wanted = bool(acceptor.outgoing)
            self._readiness.want_write(stream, wanted=wanted)

    def release_stream(self) -> None:
        """It has been taken or is rejected."""
        self._timer.cancel()
        self._readiness.remove(self.stream)


class PeerListener:
    """Lets peers in.

    Attributes:
        address: where it listens.
    """

    def __init__(self, resources: Resources, taken: Callable[[Stream, int, int], None]) -> None:
        """Listen.

        Args:
            resources: of the domain.
            taken: takes a connection that has proven itself, its rank and the path's epoch.

        Raises:
            LinkError: no port could be had.
        """
        self._context = context = resources.context
        self._readiness = resources.readiness
        self._timeout = resources.handshake_timeout
        self._taken = taken
        self._half_open: dict[HalfOpen, None] = {}
        address, wire = resources.interface.address, resources.wire
        self._listener = context.network.listen(address, link=wire)
        self.address: Address = self._listener.address
        self._readiness.add(self._listener, self)

    def ready(self, readable: bool, writable: bool) -> None:
        """Somebody knocks; the oldest that is unproven goes when there are too many."""
        stream = self._listener.accept()
        if stream is None:
            return
        stream.carries("nic.ofi_emulated")
        context = self._context
        nonce = context.network.entropy(NONCE_SIZE)
        key, job = context.job_key, context.job_id
        acceptor = Acceptor(
            key,
            job,
            context.rank,
            context.size,
            nonce,
            MAGIC,
            lambda rank: seal_level(context, context.procs[rank]),
        )
        shared = self._readiness, context.engine, self._timeout
        incoming = HalfOpen(self, stream, acceptor, *shared)
        self._half_open[incoming] = None
        self._readiness.add(stream, incoming)
        if len(self._half_open) > HALF_OPEN_MAX:
            self.reject(next(iter(self._half_open)))

    def establish(self, incoming: HalfOpen, acceptor: Acceptor) -> None:
        """It has proven to come from a rank of this job."""
        del self._half_open[incoming]
        incoming.release_stream()
        incoming.stream.belongs_to(acceptor.peer)
        stream = sealed(acceptor, self._context.job_key, incoming.stream, self._readiness)
        self._taken(stream, acceptor.peer, EPOCH.unpack_from(acceptor.theirs)[0])

    def reject(self, incoming: HalfOpen) -> None:
        """Close a connection that has not proven itself; harmless when it is gone already."""
        if incoming in self._half_open:
            del self._half_open[incoming]
            incoming.release_stream()
            incoming.stream.close()

    def close(self) -> None:
        """Let nobody in any more."""
        for incoming in list(self._half_open):
            self.reject(incoming)
        self._readiness.remove(self._listener)
        self._listener.close()
