"""Whether the device of a module can still be used."""

from __future__ import annotations

from ompy.compiled import cclass


@cclass
class Device:
    """Of one module.

    Attributes:
        dead: why it can never be used again; empty while it can.
    """

    dead: str
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self.dead = ""

    def fail(self, reason: str) -> bool:
        """It has failed for good. Whether that is news."""
        news = not self.dead
        self.dead = self.dead or reason
        return news
