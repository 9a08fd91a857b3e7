"""Whether the path to a peer still carries packets, whatever the ranks at its ends do.

A rank that computes acknowledges nothing, so silence of a peer is no reason to give a path up. A
BTL that has waited in vain has the path watched: the agents of both hosts, which never compute, ask
each other over it. The README of this folder says who asks and who answers.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ompy.frameworks.proc import Proc

MS: Final = 1_000_000  # ns; Linux counts so
INTERVAL_MS: Final = 10  # arbitrary: a hundred datagrams a second while a path is in doubt
# arbitrary: with usnic's 100 ms until a packet is in doubt a dead rail is known in half a second;
# where 30 % of what goes each way is lost, 35 questions stay without an answer once in 10^10
TIMEOUT_MS: Final = 350
# arbitrary: without a rail to spare the path is all there is; as btl/tcp's silence
PATIENCE_MS: Final = 1250
assert PATIENCE_MS >= TIMEOUT_MS >= INTERVAL_MS


class PathVerdict(Enum):
    """What is known of the way to a peer that does not answer."""

    ALIVE = "alive"  # the path works and the process is there: it is only silent
    UNKNOWN = "unknown"
    DEAD = "dead"


class Probing(NamedTuple):
    """How a path is asked about.

    Attributes:
        interval: ns from one question to the next.
        timeout: ns of questions without an answer after which the path is dead, where whoever
            has it watched goes on over another one; 0: nobody asks.
        patience: ns of the same where it is all there is.
    """

    interval: int = INTERVAL_MS * MS
    timeout: int = TIMEOUT_MS * MS
    patience: int = PATIENCE_MS * MS

    def turns(self, *, failover: bool, least: int) -> int:
        """Questions without an answer after which a path is dead, asked for `least` ns at least."""
        timeout = self.timeout if failover else max(self.timeout, self.patience)
        return -(-max(timeout, least) // self.interval)


class PathWatch:
    """One path that is being watched, until `end`.

    Attributes:
        verdict: what is known by now.
        asked: somebody finds out, so that it will not stay UNKNOWN.
    """

    asked = False

    def __init__(self) -> None:
        self.verdict = PathVerdict.UNKNOWN

    @property
    def why(self) -> str:
        """What the verdict rests on, in words; empty while it is UNKNOWN."""
        return ""

    def end(self) -> None:
        """Nobody needs to know any more. Harmless the second time."""


class Paths:
    """Has paths watched. This one knows of nobody to ask: its watches stay UNKNOWN."""

    def watch(
        self,
        proc: Proc,
        source: str,
        target: str,
        rail: str,
        changed: Callable[[], object],
        *,
        failover: bool = False,
        least: int = 0,
    ) -> PathWatch:
        """Begin to find out; returns at once.

        Args:
            proc: the peer.
            source: address of this rank's interface, as `Network.interfaces` has it.
            target: address of the peer's interface.
            rail: name of this rank's interface.
            changed: called with the rank's lock held when the verdict is another one; it may be
                called from within a poll of another BTL, so it only takes note.
            failover: there may be another path to go on over, so that it is better to know soon.
            least: ns; a path is not dead before it has been asked in vain for so long. For who
                knows that round trips take long.
        """
        return PathWatch()
