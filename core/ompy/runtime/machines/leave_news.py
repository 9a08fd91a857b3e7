"""News of ranks that finalize: collected for a moment, then told at once.

Most jobs end with all ranks finalizing together. Told at once, each would tell each of the others,
which are on their way out as well. So an agent waits a little, and then tells only those of its
ranks that have not finalized by then: mostly there are none. Relays and the launcher do likewise
with the news of hosts, so that their number does not grow with the square of the hosts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from ompy.frameworks.fault_tolerance.departures import in_ranges

# s; arbitrary: longer than ranks that end together are apart, short for who waits in vain
COLLECTING: Final = 0.02

# of each rank: which, whether it is done with finalizing, and the ranges of ranks it has sent
# something to and told so itself; None where it did not say
News = list[tuple[int, bool, Sequence[Sequence[int]] | None]]


class LeavingNews:
    """What the ranks of one host have said about their leaving and nobody was told yet."""

    def __init__(self) -> None:
        self._told: dict[int, Any] = {}
        self._finalized: dict[int, bool] = {}

    def begun(self, rank: int, told: Sequence[Sequence[int]]) -> bool:
        """A rank has begun to finalize, and has told these ranges of ranks what it sent them.

        Returns:
            Whether it is the first of which nobody was told: the moment begins.
        """
        self._told[rank] = told
        return self._add(rank, done=False)

    def finalized(self, rank: int) -> bool:
        """A rank is done with finalizing. Returns as `begun`."""
        return self._add(rank, done=True)

    def _add(self, rank: int, *, done: bool) -> bool:
        first = not self._finalized
        self._finalized[rank] = done
        return first

    def take(self) -> News:
        """All of it: the moment is over."""
        finalized, self._finalized = self._finalized, {}
        return [(rank, done, self._told.get(rank)) for rank, done in finalized.items()]


class NewsOfHosts:
    """The same of several hosts, as a relay or the launcher passes them on."""

    def __init__(self) -> None:
        self._news: News = []
        self._agents: set[int] = set()

    def add_news(self, agent: int, body: bytes) -> bool:
        """What an agent below says. Returns whether it is the first: the moment begins."""
        first = not self._news
        self._news += unpack_news(body)
        self._agents.add(agent)
        return first

    def take_news(self) -> tuple[bytes, set[int]]:
        """All of it, which may be nothing, and the agents it is from: the moment is over."""
        news, self._news = self._news, []
        agents, self._agents = self._agents, set()
        return pack_news(news) if news else b"", agents


def pack_news(news: Sequence[object]) -> bytes:
    """As the body of LEFT: of thousands of ranks it is too large for a header."""
    return json.dumps(news, separators=(",", ":")).encode()


def unpack_news(body: bytes) -> News:
    """The inverse of `pack_news`."""
    return [(rank, done, told) for rank, done, told in json.loads(body)]


def for_rank(news: News, receiver: int) -> list[tuple[int, bool, bool]]:
    """What one rank is told: of each rank whether it is done, and never sent this one anything."""
    return [
        (rank, done, told is not None and not in_ranges(receiver, told))
        for rank, done, told in news
        if rank != receiver
    ]
