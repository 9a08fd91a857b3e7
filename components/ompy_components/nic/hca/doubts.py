"""Peers that do not answer: whether that is the path's fault.

The agents of both hosts, which never compute, are asked to try the path
(`ompy.frameworks.paths.path_watch`) from the first timeout on, until something gets through. All
queue pairs to one device of a peer ask together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ompy.frameworks.nic.verbs import Destination
from ompy.frameworks.paths.path_watch import PathVerdict, PathWatch


class Connected(Protocol):
    """One end of a connection, of which answers are due.

    Attributes:
        peer: rank of the peer.
        there: the peer's end, once it is known.
    """

    peer: int
    there: Destination | None


class Doubt:
    """A path that is being watched, and the queue pairs that want to know."""

    __slots__ = ("pairs", "watch")

    def __init__(self, watch: PathWatch) -> None:
        self.watch = watch
        self.pairs: set[Connected] = set()


class Doubts:
    """Of one device, by the LID of the peer's."""

    def __init__(
        self,
        departed: Callable[[int], str],
        ask: Callable[[int, str], PathWatch],
        suspect: Callable[[], None],
    ) -> None:
        """Begin without a doubt.

        Args:
            departed: says why a rank can no longer be reached; empty: it can.
            ask: has the path to a rank watched, to its host's address.
            suspect: looks whether the own cable is out.
        """
        self._departed = departed
        self._ask = ask
        self._suspect = suspect
        self._open: dict[int, Doubt] = {}

    def unanswered(self) -> None:
        """A packet was not answered: that may be the own cable."""
        self._suspect()

    def departed(self, pair: Connected) -> str:
        """Why the peer of a queue pair can no longer be reached; empty while it can."""
        return self._departed(pair.peer)

    def verdict(self, pair: Connected) -> PathVerdict:
        """What is known of the path to the peer of a queue pair; begins to ask."""
        if self.departed(pair):
            return PathVerdict.DEAD
        assert pair.there is not None, "who waits for an answer is connected"
        doubt = self._open.get(pair.there.lid)
        if doubt is None:
            doubt = self._open[pair.there.lid] = Doubt(self._ask(pair.peer, pair.there.host))
        doubt.pairs.add(pair)
        return doubt.watch.verdict

    def asked(self, pair: Connected) -> bool:
        """Whether there will be a verdict."""
        doubt = self._doubt(pair)
        return doubt is not None and doubt.watch.asked

    def why(self, pair: Connected) -> str:
        """What the verdict rests on, in words."""
        doubt = self._doubt(pair)
        return doubt.watch.why if doubt is not None else ""

    def settle(self, pair: Connected) -> None:
        """A queue pair has no doubt any more, or no interest."""
        doubt = self._doubt(pair) if self._open else None
        if doubt is None:
            return
        doubt.pairs.discard(pair)
        if not doubt.pairs:
            assert pair.there is not None
            del self._open[pair.there.lid]
            doubt.watch.end()

    def close(self) -> None:
        """Nothing is sent any more."""
        for doubt in self._open.values():
            doubt.watch.end()
        self._open.clear()

    def _doubt(self, pair: Connected) -> Doubt | None:
        return None if pair.there is None else self._open.get(pair.there.lid)
