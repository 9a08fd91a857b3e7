"""What BTL modules may have counted beside their `counters`: bytes, by who was sent them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class CountsBytes(Protocol):
    """A BTL module that knows how many bytes it has sent to whom; not every one has to."""

    def bytes_to(self) -> dict[int, int]:
        """The bytes sent to each rank of the job; read at any moment, by a signal handler too."""
