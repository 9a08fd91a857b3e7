"""How many packets a queue pair may have under way, below what the window allows.

The wire of a real adapter loses nothing, as each hop gives credits; a socket drops what it has no
room for. And who goes back sends again what did arrive: so after a loss it is half as many, after
a timeout one, and one more for each window that got through. A timeout asks a peer that may only
be computing, so one packet is enough; when that is acknowledged it goes on with half of what it
had.

Source: RFC 5681 (congestion avoidance, the loss window).
"""

from __future__ import annotations

from typing import Final

LEAST: Final = 4  # packets; arbitrary: at 20 % loss some of so many get through


class CongestionWindow:
    """The number, and what changes it.

    Attributes:
        packets: that may be under way.
    """

    __slots__ = ("_gained", "_most", "_wanted", "packets")

    def __init__(self, most: int) -> None:
        """Begin with all of the window."""
        self._most = most
        self._wanted = most
        self._gained = 0
        self.packets = most

    def gained(self, count: int) -> None:
        """So many packets got through."""
        self.packets = self._wanted
        self._gained += count
        if self._gained >= self._wanted:
            self._gained = 0
            self.packets = self._wanted = min(self._wanted + 1, self._most)

    def lost(self) -> None:
        """The peer misses one."""
        self._gained = 0
        self.packets = self._wanted = max(self._wanted // 2, min(LEAST, self._most))

    def probing(self) -> None:
        """Something may have been lost: one packet finds out, and costs nothing if nothing was."""
        self.packets = 1

    def expired(self) -> None:
        """Nothing was heard."""
        if self.packets > 1:
            self.lost()
        self.packets = 1
