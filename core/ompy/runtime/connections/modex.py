"""What the processes of a job have published, and who waits for it. Does no input or output.

Every agent has the whole of it: what a rank of another host committed or how it ended comes
through the launcher.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Final

_ENTRY: Final = struct.Struct("!II")  # sizes of key and value
_COMMIT: Final = struct.Struct("!II")  # a rank, and the size of what it committed
Answer = Callable[[bytes | None, str], None]  # (committed, "") or (None, why there is nothing)


class ModexStore:
    """Commits, lookups and fences of one job, as one agent knows them.

    Attributes:
        departed: why a rank can no longer be reached, by rank.
    """

    def __init__(self, local_ranks: frozenset[int], size: int) -> None:
        """Nothing is committed.

        Args:
            local_ranks: of this host, of those that the job begins with.
            size: how many it begins with: a fence is theirs.
        """
        self._size = size
        self._local = local_ranks
        self._committed: dict[int, bytes] = {}
        self._waiting: dict[int, list[Answer]] = {}
        self._fence: dict[int, Answer] = {}
        self.departed: dict[int, str] = {}

    def commit(self, rank: int, packed: bytes) -> None:
        """Rank `rank` made `packed` visible: all who wait for it are answered."""
        self._committed[rank] = packed
        for answer in self._waiting.pop(rank, ()):
            answer(packed, "")

    def lookup(self, rank: int, answer: Answer) -> None:
        """Answer with what `rank` committed, now or when it has, or why it never will."""
        if rank in self._committed:
            answer(self._committed[rank], "")
        elif rank in self.departed:
            answer(None, self.departed[rank])
        else:
            self._waiting.setdefault(rank, []).append(answer)

    def fence(self, rank: int, answer: Answer) -> bool:
        """A rank of this host has come to the fence. True when all of this host now have."""
        if rank >= self._size:
            answer(None, "it is for the processes that a job begins with")
            return False
        if self._first_departed():
            answer(None, self._first_departed())
            return False
        self._fence[rank] = answer
        return len(self._fence) == len(self._local)

    def fenced(self) -> None:
        """All ranks of the job have come: let those of this host go on."""
        self._answer_fence(b"", "")

    def depart(self, rank: int, reason: str) -> None:
        """Rank `rank` is gone: nobody waits for it any longer."""
        self.departed[rank] = reason
        for answer in self._waiting.pop(rank, ()):
            answer(None, reason)
        if rank < self._size:
            self._answer_fence(None, self._first_departed())

    def _first_departed(self) -> str:
        """Of those a fence is for; empty if all are there."""
        gone = (item for item in self.departed.items() if item[0] < self._size)
        return next((f"rank {rank} {reason}" for rank, reason in gone), "")

    def _answer_fence(self, committed: bytes | None, why: str) -> None:
        waiting, self._fence = self._fence, {}
        for answer in waiting.values():
            answer(committed, why)


def bundle(commits: Mapping[int, bytes]) -> bytes:
    """What several ranks committed, as one piece: an agent tells the other hosts by it."""
    pieces = []
    for rank, packed in commits.items():
        pieces += [_COMMIT.pack(rank, len(packed)), packed]
    return b"".join(pieces)


def unbundle(body: bytes) -> dict[int, bytes]:
    """The inverse of `bundle`."""
    found = {}
    position = 0
    while position < len(body):
        rank, size = _COMMIT.unpack_from(body, position)
        position += _COMMIT.size
        found[rank] = body[position : position + size]
        position += size
    return found


def pack(published: Mapping[str, bytes]) -> bytes:
    """What a process published, as one piece."""
    pieces = []
    for key, value in published.items():
        name = key.encode()
        pieces += [_ENTRY.pack(len(name), len(value)), name, value]
    return b"".join(pieces)


def unpack(packed: bytes) -> dict[str, bytes]:
    """The inverse of `pack`."""
    found = {}
    position = 0
    while position < len(packed):
        name_size, value_size = _ENTRY.unpack_from(packed, position)
        name_end = position + _ENTRY.size + name_size
        name = packed[position + _ENTRY.size : name_end].decode()
        position = name_end + value_size
        found[name] = packed[name_end:position]
    return found
