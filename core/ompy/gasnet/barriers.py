"""Barriers: named or anonymous, in two phases.

Source: reference gasnet.md 2 (barrier), 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ompy.frameworks.collectives.call_order import NUMBER_SHIFT
from ompy.frameworks.conduit import EXTENDED_HANDLERS, Category, Token
from ompy.frameworks.needs import COLLECTIVE, Meeting, Need, Needing
from ompy.gasnet.dissemination import ANONYMOUS, MISMATCH, Dissemination, Knowledge
from ompy.gasnet.errors import BadArgument, BarrierMismatch
from ompy.gasnet.messages import words_of
from ompy.gasnet.syncs import Syncs

ROUND: Final = EXTENDED_HANDLERS[2]
BARRIERS: Final = -1  # number of this meeting; arbitrary: there is no other


class _News(Needing):
    """Waits for a round of the barrier, which ends only once all ranks have entered."""

    def __init__(self, machine: Dissemination, barriers: Meeting, rank: int) -> None:
        self._machine = machine
        self._barriers = barriers
        self._others = tuple(each for each in range(len(barriers.procs)) if each != rank)

    def __call__(self) -> bool:
        """Whether there is news."""
        return self._machine.has_news()

    def need(self) -> Need:
        """All others have to enter the same one."""
        number = self._barriers.number
        return Need(
            COLLECTIVE, self._barriers, self._others, word=number << NUMBER_SHIFT,
            detail=f"barrier {number} of GASNet",
        )  # fmt: skip


class Barriers(Syncs):
    """Barriers of all ranks."""

    def barrier_notify(self, name: int = 0, flags: int = ANONYMOUS) -> None:
        """Enter a barrier, without waiting.

        Args:
            name: a number of 32 bits with a sign that all ranks should give alike.
            flags: BARRIERFLAG_ANONYMOUS: no name is given, any will do; BARRIERFLAG_MISMATCH: make
                it fail on all ranks; 0: the name counts.

        Raises:
            BadArgument: the last barrier has not been waited for, flags are unknown, or this
                thread may not communicate now.
            ResourceError: a peer is gone.
        """
        self._check_free()
        if flags & ~(ANONYMOUS | MISMATCH):
            raise BadArgument(f"a barrier has no flags {flags}")
        (word,) = words_of([name])
        machine = self._barrier
        if machine.entered:
            raise BadArgument("this rank has notified a barrier already: wait for it first")
        self._barrier_given = (name, flags)
        machine.enter(Knowledge(flags, 0 if flags else word))
        self._barriers.number += 1
        self._kick_barrier()

    def barrier_wait(self, name: int = 0, flags: int = ANONYMOUS) -> None:
        """Wait until all ranks have entered the barrier that this one has entered.

        Args:
            name: as given to `barrier_notify`.
            flags: as given to it.

        Raises:
            BarrierMismatch: names differ between ranks, or from the one notified, or a rank said
                that there is a mismatch. All ranks have entered, and the barrier is over.
            BadArgument: none was entered, or this thread may not wait now.
            ResourceError: a peer is gone.
        """
        self._check_entered()
        machine = self._barrier
        while not machine.complete():
            self._kick_barrier()
            self._wait_for(self._news)
        self._leave(name, flags)

    def barrier_try(self, name: int = 0, flags: int = ANONYMOUS) -> bool:
        """Whether all ranks have entered the barrier; it is over then. Raises as `barrier_wait`."""
        self._check_entered()
        self._progress()
        self._kick_barrier()
        if not self._barrier.complete():
            return False
        self._leave(name, flags)
        return True

    def barrier(self, name: int = 0, flags: int = ANONYMOUS) -> None:
        """Enter a barrier and wait for it. Raises as `barrier_notify` and `barrier_wait`."""
        self.barrier_notify(name, flags)
        self.barrier_wait(name, flags)

    # --- below

    def _check_entered(self) -> None:
        self._check_free()
        if not self._barrier.entered:
            raise BadArgument("this rank has entered no barrier: notify it first")

    def _leave(self, name: int, flags: int) -> None:
        known = self._barrier.leave()
        other = flags != self._barrier_given[1] or (not flags and name != self._barrier_given[0])
        if other:
            given = "barrier {} with flags {}".format(*self._barrier_given)
            raise BarrierMismatch(f"notified {given}, waited for {name} with flags {flags}")
        if known.flags & MISMATCH:
            raise BarrierMismatch("the ranks did not name the same barrier")

    def _prepare_barriers(self) -> None:
        """Have the handler in the table."""
        context = self._conduit.context
        self._barrier = Dissemination(self._me, context.size)
        self._barriers = Meeting(BARRIERS, "GASNet", context.procs[: context.size])
        self._news = _News(self._barrier, self._barriers, self._me)
        context.meetings.append(self._barriers)
        self._barrier_given = (0, ANONYMOUS)
        self._add_handler(ROUND, self._on_round)

    def _on_round(self, _token: Token, _payload: memoryview, words: Sequence[int]) -> None:
        parity, number, flags, name = words
        self._barrier.take_round(parity, number, Knowledge(flags, name))

    def _kick_barrier(self) -> None:
        while (message := self._barrier.next_round()) is not None:
            words = [message.parity, message.number, *message.known]
            self._send_request(Category.SHORT, message.peer, ROUND, words)
