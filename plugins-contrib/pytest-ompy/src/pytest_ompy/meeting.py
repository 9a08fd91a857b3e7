"""Where virtual ranks wait for each other at the end of a test."""

from __future__ import annotations

from ompy.data.request import Waitable
from ompy.engine.base import Engine


class Meeting(Waitable):
    """Complete when all ranks have come.

    Attributes:
        present: ranks that have come.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.present: set[int] = set()
        self._size = size
        self._engines: list[Engine] = []

    def wait(self, engine: Engine, rank: int) -> None:
        """Come, and wait for the others; what they still want of this rank goes on meanwhile."""
        self.present.add(rank)
        self._engines.append(engine)
        if len(self.present) == self._size:
            self.finish()
            for other in self._engines:
                other.wake()  # type: ignore[attr-defined]
        engine.wait(self)

    def __repr__(self) -> str:
        return "the other ranks to come to the end of the test"
