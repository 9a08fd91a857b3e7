"""The lock of one rank's window: shared by many or held by one, first come, first served."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ompy.data.errors import ERR_PROC_FAILED, ERR_RMA_SYNC, MPIError

Answer = Callable[[int, str], object]  # error class, 0 for success, and what is wrong


class LockQueue:
    """Who has the lock, and who waits for it.

    A shared request waits behind an exclusive one that came before, so that nobody starves.
    """

    def __init__(self) -> None:
        self._holders: dict[int, int] = {}  # how often, by rank
        self._exclusive = False
        self._waiting: deque[tuple[int, bool, Answer]] = deque()

    def request(self, rank: int, exclusive: bool, answer: Answer) -> None:
        """Ask for it; `answer` is called when `rank` has it, at once if it is free."""
        self._waiting.append((rank, exclusive, answer))
        self._grant()

    def release(self, rank: int) -> None:
        """Give it back; others get it now.

        Raises:
            MPIError: ERR_RMA_SYNC, this rank does not have it.
        """
        left = self._holders.pop(rank, 0) - 1
        if left < 0:
            raise MPIError(ERR_RMA_SYNC, f"rank {rank} does not have the lock it gives back")
        if left:
            self._holders[rank] = left
        self._grant()

    @property
    def contended(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def holders(self) -> list[int]:
        """The ranks that have it."""
        return list(self._holders)

    def queued(self) -> list[tuple[int, bool]]:
        """The ranks that wait, in order, and whether they want it alone."""
        return [(rank, exclusive) for rank, exclusive, _ in self._waiting]

    def departed(self, rank: int) -> None:
        """A rank has ended that may have had the lock.

        What it was about to do under the lock may be half done, so those who waited for it are
        told, and do not get it; whoever asks from now on does.
        """
        self._waiting = deque(each for each in self._waiting if each[0] != rank)
        if self._holders.pop(rank, 0):
            refused, self._waiting = self._waiting, deque()
            for _, _, answer in refused:
                answer(ERR_PROC_FAILED, f"rank {rank} has ended while it had the lock")
        self._grant()

    def _grant(self) -> None:
        while self._waiting:
            rank, exclusive, answer = self._waiting[0]
            if self._holders and (exclusive or self._exclusive):
                return
            self._waiting.popleft()
            self._exclusive = exclusive
            self._holders[rank] = self._holders.get(rank, 0) + 1
            answer(0, "")
