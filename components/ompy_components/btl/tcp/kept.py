"""What a peer has not acknowledged: a queue whose two ends cost a compiled caller next to nothing.

Source: README.md, "Failover".
"""

from __future__ import annotations

from typing import Final

from ompy.frameworks.btl import Descriptor

Entry = Descriptor | bytes  # of a frame that `sendi` has made there are only the bytes

_TIDY: Final = 256  # arbitrary: taken entries that a list may begin with


class Kept:
    """Entries, oldest first.

    A deque's methods are looked up and called anew for every message; a list with the number of
    those that are taken is not. It is empty again and again, and then begins anew.
    """

    __slots__ = ("_entries", "_taken")

    def __init__(self) -> None:
        self._entries: list[Entry | None] = []
        self._taken = 0

    def __len__(self) -> int:
        return len(self._entries) - self._taken

    def append(self, entry: Entry) -> None:
        """Add the newest."""
        self._entries.append(entry)

    def popleft(self) -> Entry:
        """Take the oldest. There is one."""
        entries, index = self._entries, self._taken
        entry = entries[index]
        assert entry is not None, "it was taken before"
        entries[index] = None
        index += 1
        if index == len(entries):
            entries.clear()
            index = 0
        elif index == _TIDY:
            del entries[:index]
            index = 0
        self._taken = index
        return entry

    def take_all(self) -> list[Entry]:
        """Take all there are."""
        left = [entry for entry in self._entries if entry is not None]
        self._entries.clear()
        self._taken = 0
        return left
