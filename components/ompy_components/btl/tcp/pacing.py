"""How much goes ahead of what is said about a broken path: of a put, and of what a kernel holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.frameworks.bml import has_spare

if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy.frameworks.proc import Proc
    from ompy.net.base import Stream


class Pacing:
    """Of one module that fails over."""

    __slots__ = ("_chunk", "_several", "_unsent_max")

    def __init__(self, chunk: int, unsent_max: int, several: Callable[[], bool]) -> None:
        """Of several rails.

        Args:
            chunk: bytes of a put that go in one frame while another rail is left; 0: all.
            unsent_max: bytes that a kernel takes before it has sent them; 0: as it likes.
            several: whether the rank has other modules of this kind.
        """
        self._chunk = chunk
        self._unsent_max = unsent_max
        self._several = several

    def chunk_for(self, proc: Proc) -> int:
        """Bytes of a put that go in one frame; 0 for all.

        Over the last of several rails, too: what follows from the loss of the others must not wait.
        """
        return self._chunk if self._several() or has_spare(proc) else 0

    def prepare(self, stream: Stream) -> None:
        """A connection is there: what is said about another one must not wait long in it."""
        if self._unsent_max:
            stream.hold_unsent(self._unsent_max)
