"""A connection around another: what middleware wraps streams in."""

from __future__ import annotations

from collections.abc import Sequence

from ompy.net.base import Address, Stream
from ompy.net.totals import Totals


class WrappedStream(Stream):
    """Passes everything on; a kind of middleware overrides what it is there for.

    Attributes:
        inner: the stream below.
    """

    __slots__ = ("inner",)

    def __init__(self, inner: Stream) -> None:
        self.inner = inner

    def send(self, pieces: Sequence[memoryview]) -> int:
        """As the stream below."""
        return self.inner.send(pieces)

    def receive_into(self, view: memoryview) -> int:
        """As the stream below."""
        return self.inner.receive_into(view)

    def fail(self, why: str) -> None:
        """As the stream below."""
        self.inner.fail(why)

    def abandon(self) -> None:
        """As the stream below."""
        self.inner.abandon()

    def block_output(self) -> None:
        """As the stream below."""
        self.inner.block_output()

    def sends_again(self) -> bool:
        """As the stream below."""
        return self.inner.sends_again()

    def unacknowledged(self) -> int:
        """As the stream below."""
        return self.inner.unacknowledged()

    def totals(self) -> Totals:
        """As the stream below."""
        return self.inner.totals()

    def hold_unsent(self, most: int) -> None:
        """As the stream below."""
        self.inner.hold_unsent(most)

    def ask_when_idle(self) -> bool:
        """As the stream below."""
        return self.inner.ask_when_idle()

    def own_address(self) -> Address:
        """As the stream below."""
        return self.inner.own_address()

    def belongs_to(self, rank: int) -> None:
        """As the stream below."""
        self.inner.belongs_to(rank)

    def holds(self) -> bool:
        """As the stream below."""
        return self.inner.holds()

    def close(self) -> None:
        """As the stream below."""
        self.inner.close()
