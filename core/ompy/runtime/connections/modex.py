"""What the processes of a job have published, and who waits for it. Does no input or output.

The launcher has all of it (`CardIndex`). An agent has what the ranks of its own host committed, and
fetches that of another host when one of its ranks first looks for a rank there (`ModexStore`). From
then on the launcher tells it what is new of that host.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ompy.frameworks.job import Placement

_ENTRY: Final = struct.Struct("!II")  # sizes of key and value
_COMMIT: Final = struct.Struct("!II")  # a rank, and the size of what it committed
Answer = Callable[[bytes | None, str], None]  # (committed, "") or (None, why there is nothing)


class ModexStore:
    """Commits, lookups and fences of one job, as one agent knows them.

    Attributes:
        departed: why a rank can no longer be reached, by rank.
    """

    def __init__(self, local_ranks: frozenset[int], hosts: Sequence[int], node: int) -> None:
        """Nothing is committed.

        Args:
            local_ranks: of this host, of those that the job begins with: a fence is theirs.
            hosts: index of the host of each rank. The caller adds those of later ranks.
            node: index of this one.
        """
        self._size = len(hosts)
        self._local = local_ranks
        self._hosts = hosts
        self._committed: dict[int, bytes] = {}
        self._waiting: dict[int, list[Answer]] = {}
        self._fence: dict[int, Answer] = {}
        self._followed = {node}  # hosts: whatever their ranks commit comes here
        self._wanted: set[int] = set()  # hosts that were asked for, and are not followed yet
        self.departed: dict[int, str] = {}

    def commit(self, rank: int, packed: bytes) -> None:
        """Rank `rank` made `packed` visible: all who wait for it are answered."""
        self._committed[rank] = packed
        for answer in self._waiting.pop(rank, ()):
            answer(packed, "")

    def follow(self, host: int) -> None:
        """All is known that the ranks of a host have committed, and from now on will be."""
        self._followed.add(host)
        self._wanted.discard(host)
        for rank in [rank for rank in self._waiting if rank in self.departed]:
            if self._hosts[rank] == host:
                self._give_up(rank)

    def lookup(self, rank: int, answer: Answer) -> bool:
        """Answer with what `rank` committed, now or when it has, or why it never will.

        Returns:
            Whether the launcher has to be asked for what its host has.
        """
        if rank in self._committed:
            answer(self._committed[rank], "")
            return False
        host = self._hosts[rank]
        if rank in self.departed and host in self._followed:
            answer(None, self.departed[rank])
            return False
        self._waiting.setdefault(rank, []).append(answer)
        if host in self._followed or host in self._wanted:
            return False
        self._wanted.add(host)
        return True

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
        """Rank `rank` is gone: nobody waits for it any longer, once all is here that it said."""
        self.departed[rank] = reason
        if self._hosts[rank] in self._followed:
            self._give_up(rank)
        if rank < self._size:
            self._answer_fence(None, self._first_departed())

    def _give_up(self, rank: int) -> None:
        for answer in self._waiting.pop(rank, ()):
            answer(None, self.departed[rank])

    def _first_departed(self) -> str:
        """Of those a fence is for; empty if all are there."""
        gone = (item for item in self.departed.items() if item[0] < self._size)
        return next((f"rank {rank} {reason}" for rank, reason in gone), "")

    def _answer_fence(self, committed: bytes | None, why: str) -> None:
        waiting, self._fence = self._fence, {}
        for answer in waiting.values():
            answer(committed, why)


class CardIndex:
    """What all ranks of a job have committed, and which agents follow which hosts."""

    def __init__(self) -> None:
        """Nothing is committed."""
        self._committed: dict[int, dict[int, bytes]] = {}  # by host and rank
        self._followers: dict[int, list[int]] = {}  # by host: the agents

    def commit(self, body: bytes, placements: Sequence[Placement]) -> list[int]:
        """An agent tells what ranks of its host have committed.

        Args:
            body: a bundle.
            placements: of all ranks.

        Returns:
            The agents that have to hear it.
        """
        commits = unbundle(body)
        hosts = {placements[rank].node for rank in commits}
        for rank, packed in commits.items():
            self._committed.setdefault(placements[rank].node, {})[rank] = packed
        return [agent for host in hosts for agent in self._followers.get(host, ())]

    def cards_for(self, agent: int, host: int) -> bytes:
        """An agent wants what the ranks of a host have committed, and follows it from now on.

        Args:
            agent: which.
            host: index of that host.

        Returns:
            A bundle of it.
        """
        self._followers.setdefault(host, []).append(agent)
        return bundle(self._committed.get(host, {}))


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
