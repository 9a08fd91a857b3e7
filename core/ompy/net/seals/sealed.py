"""A connection under a seal: what a proven one is read and written through between hosts.

It is around the stream and its middleware, so faults and meters see what is on the wire. Whoever
reads gets bytes of records whose seal was right, and nothing else; a wrong one is a LinkError, as
any broken connection. `records.py` has the form.
"""

from __future__ import annotations

from collections.abc import Sequence

from ompy.net.base import WOULD_BLOCK, Readiness, Stream
from ompy.net.faults.wrapped import WrappedStream
from ompy.net.seals.handshake import SealLevel
from ompy.net.seals.records import Opener, Sealer, Writer


class SealedStream(WrappedStream):
    """Seals what is sent and checks what comes.

    What `send` does not take must be offered again before anything else, as all users do that have
    a queue. Bytes that were read and not asked for yet are here, where no kernel reports them: the
    readiness set is told.
    """

    __slots__ = ("_opener", "_plain", "_readiness", "_told", "_writer")

    def __init__(
        self, inner: Stream, level: SealLevel, keys: tuple[bytes, bytes], readiness: Readiness
    ) -> None:
        """Begin after the last byte of the handshake.

        Args:
            inner: the connection.
            level: what was agreed on, not NONE.
            keys: of what is sent, and of what comes.
            readiness: that the connection is in, or will be.
        """
        super().__init__(inner)
        self._writer = Writer(Sealer(keys[0], level), inner.send)
        self._opener = Opener(keys[1], level)
        self._readiness = readiness
        self._plain = memoryview(b"")  # of the last record, what nobody has asked for
        self._told = False  # the readiness set, that there may be more

    def send(self, pieces: Sequence[memoryview]) -> int:
        """Send them in records, and answer how many bytes have gone in whole ones."""
        return self._writer.write_pieces(pieces)

    def receive_into(self, view: memoryview) -> int:
        """Bytes that are known to come from the other end."""
        size = len(view)
        filled = 0
        opener = self._opener
        while True:
            left = len(self._plain)
            if left:
                count = min(left, size - filled)
                view[filled : filled + count] = self._plain[:count]
                self._plain = self._plain[count:]
                filled += count
                if filled == size:
                    break
            if opener.next():
                self._plain = memoryview(opener.plain)
                continue
            if filled:
                break
            count = self.inner.receive_into(opener.room())
            if count <= 0:
                self._tell(more=False)
                return count
            opener.received(count)
        self._tell(more=filled == size and (len(self._plain) > 0 or opener.holds))
        return filled

    def holds(self) -> bool:
        """Whether bytes may be here that were not asked for."""
        return self._told

    def _tell(self, *, more: bool) -> None:
        if more is not self._told:
            self._told = more
            self._readiness.hold(self, held=more)


assert WOULD_BLOCK < 0
