"""What an endpoint that acknowledges does beside the others as its path comes and goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.frameworks.bml import has_spare

from ompy_components.btl.tcp.path import TcpPath

if TYPE_CHECKING:
    from ompy.net.base import Stream

    from ompy_components.btl.tcp.acknowledging import FailoverEndpoint
    from ompy_components.btl.tcp.connecting import Connector
    from ompy_components.btl.tcp.framing import FrameReader
    from ompy_components.btl.tcp.link import Link
    from ompy_components.btl.tcp.pacing import Pacing

# attempts to make a first connection while another rail leads to the peer. Arbitrary: 140 ms, in
# which a listener whose queue was full has room again; what waits goes over the other rail then,
# and this one is taken back when it works
SPARED_TRIES: Final = 4
NUMBER_SIZE: Final = 4  # bytes of a nonce that are the connection's number


class FailoverPath(TcpPath):
    """Of an endpoint that acknowledges: an offer says its number, a broken path has a tail."""

    __slots__ = ("_link", "_pacing", "_there")

    def __init__(
        self, endpoint: FailoverEndpoint, connector: Connector, pacing: Pacing, link: Link
    ) -> None:
        """Make its connections.

        Args:
            endpoint: that uses them.
            connector: begins them.
            pacing: prepares each.
            link: of the module's interface.
        """
        super().__init__(endpoint, connector)
        self._there = endpoint
        self._pacing = pacing
        self._link = link

    def waits(self) -> bool:
        """Something was sent that is not acknowledged, or asked for that is not here."""
        return self._there.waits()

    def progress(self) -> object:
        """What was acknowledged, and how often something has come."""
        return self._there.kept.acknowledged, self._there.news

    def open_ended(self) -> bool:
        """Something will be completed badly, or given back."""
        return bool(self._there.kept) or not self._there.remote.idle

    def reader(self) -> FrameReader:
        """One that counts."""
        return self._there.new_reader()

    def use(self, stream: Stream) -> None:
        """Frames may go, and it is looked whether they arrive."""
        self._pacing.prepare(stream)
        super().use(stream)
        if self._there.waits():
            self.endpoint.path.waiting()

    def stop(self, reason: str) -> None:
        """What was acknowledged is complete first; a kernel is not to go on with what was not."""
        there = self._there
        there.last_words()
        if there.up and (self.open_ended() or not there.leaving):
            there.abandon_stream(mute=self._link.unplugged())
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
