"""The ranks that have left the job: who tells of them, and who wants to hear of it.

A rank *leaves* when it calls MPI_Finalize: from then on it takes part in nothing new, but what it
sent before may still be under way, and it may still poll. Its process *ends* later, or without
that. Both are news of the control plane (the agents; the scheduler of a virtual world), which may
overtake what is on the wires. So nobody may take them to mean that nothing more comes; the PML
knows that (`pml/ob1/README.md`, "Ranks that leave").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ompy.frameworks.proc import Proc

FINALIZED: Final = "has finalized MPI"  # to follow a rank's name

# the process, and whether the control plane knows that it has never sent this rank anything
Listener = Callable[[Proc, bool], object]

# patience with one that has died is one of so many parts of that with one that has finalized;
# arbitrary: of its process nothing is left but what the kernel or a ring has, which is here within
# milliseconds
OF_THE_DEAD: Final = 10


class Departures:
    """What one rank knows of the others' leaving.

    Attributes:
        listeners: called with each piece of news, the rank's lock held or its only thread in a
            call of the wire-up. They note it, and act from the engine's polling.
        dead: those that have died where the job goes on without them, in the order of the news.
    """

    def __init__(self, procs: Sequence[Proc]) -> None:
        self._procs = procs
        self._early: dict[int, list[Callable[[], object]]] = {}
        self._told: dict[int, bool] = {}  # ranks that have left, and whether silent
        self.listeners: list[Listener] = []
        self.dead: list[Proc] = []

    def add_listener(self, listener: Listener) -> None:
        """Have a listener told from now on, and of the news that came before.

        Others may finish while a rank starts, before it has made its PML.
        """
        self.listeners.append(listener)
        for rank, silent in list(self._told.items()):
            listener(self._procs[rank], silent)

    def known(self, proc: Proc) -> None:
        """From now on this process is known, too: news of it that came before are taken in."""
        for news in self._early.pop(proc.rank, ()):
            news()

    def _is_early(self, rank: int, news: Callable[[], object]) -> bool:
        """Keep news of a process that was started later and is not known here yet."""
        if rank < len(self._procs):
            return False
        self._early.setdefault(rank, []).append(news)
        return True

    def left(self, rank: int, *, silent: bool = False) -> None:
        """A rank has begun to finalize.

        Args:
            rank: in the job.
            silent: it has said that it never sent this rank anything, so nothing is under way.
        """
        if self._is_early(rank, lambda: self.left(rank, silent=silent)):
            return
        proc = self._procs[rank]
        if not proc.left:
            proc.left = FINALIZED
        self._tell(proc, silent)

    def ended(self, rank: int, reason: str) -> None:
        """A rank can no longer be reached: it is done with finalizing, or its process has ended.

        Args:
            rank: in the job.
            reason: how, to follow its name.
        """
        if self._is_early(rank, lambda: self.ended(rank, reason)):
            return
        proc = self._procs[rank]
        proc.departed = reason
        proc.left = reason
        self._tell(proc, False)

    def died(self, rank: int, reason: str) -> None:
        """A rank has died without finalizing, and the job goes on without it.

        Args:
            rank: in the job.
            reason: how, to follow its name.
        """
        if self._is_early(rank, lambda: self.died(rank, reason)):
            return
        if self._procs[rank] not in self.dead:
            self.dead.append(self._procs[rank])
        self.ended(rank, reason)

    def failed(self, rank: int, reason: str) -> None:
        """A rank has failed, which ends the job: no transport waits for it any more.

        Who waits for its messages goes on waiting, so that nobody fails for it as well.
        """
        if not self._is_early(rank, lambda: self.failed(rank, reason)):
            self._procs[rank].departed = reason

    def _tell(self, proc: Proc, silent: bool) -> None:
        self._told[proc.rank] = silent or self._told.get(proc.rank, False)
        for listener in self.listeners:
            listener(proc, silent)


def ranges_of(ranks: Sequence[int]) -> list[tuple[int, int]]:
    """Ranks as ranges from first to last, for news that name many."""
    found: list[tuple[int, int]] = []
    for rank in sorted(ranks):
        if found and rank == found[-1][1] + 1:
            found[-1] = (found[-1][0], rank)
        else:
            found.append((rank, rank))
    return found


def in_ranges(rank: int, ranges: Sequence[Sequence[int]]) -> bool:
    """Whether one of `ranges_of` has a rank."""
    return any(first <= rank <= last for first, last in ranges)
