"""Worlds in which priorities decide who goes on: probabilistic concurrency testing.

Each rank has a priority by chance. One call at a time, that of the rank with the highest which can
go on; a receive from ANY_SOURCE takes what was sent first. Before D - 1 steps by chance the rank
whose turn it would be gets a priority below all others. A failure that takes D choices in a
certain order, in a program of n ranks and at most k calls, is found by such a world with a
probability of at least 1 / (n k^(D-1)).

A rank whose poll finds nothing goes below the others, too: else it would poll for ever. The source
leaves that to programs that yield, so the probability is that of programs that do not poll.

Source: Burckhardt, Kothari, Musuvathi and Nagarakatte, *A randomized scheduler with probabilistic
guarantees of finding bugs* (ASPLOS 2010).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from ompy.runtime.exploration.boxes import Operation
from ompy.runtime.exploration.events import NOTHING, SERVE
from ompy.runtime.exploration.histories import Histories
from ompy.runtime.exploration.told_world import (
    ENDED,
    LISTENS,
    MATCHES,
    RUNS,
    SLEEPS,
    Actor,
    Over,
    Point,
    ToldWorld,
)
from ompy.runtime.exploration.windows.parts import Parts
from ompy.runtime.simulation.simulated_world import BEYOND

ENOUGH: Final = 100_000  # calls; arbitrary: far above what a world has that ends


class PriorityWorld(ToldWorld):
    """One world, from the first choice on.

    Attributes:
        calls: that ranks have made.
    """

    def __init__(
        self,
        point: Point,
        histories: Sequence[Histories],
        *,
        limit: int,
        random: Random,
        changes: Sequence[int],
        parts: Parts | None = None,
    ) -> None:
        """Go on from a point.

        Args:
            point: where.
            histories: of each rank.
            limit: ns of virtual time.
            random: where priorities are drawn from.
            changes: the steps before which a priority changes.
            parts: as of a `ToldWorld`.
        """
        super().__init__(point, {}, histories, limit=limit, polls=ENOUGH, parts=parts)
        order = random.sample(range(len(self._actors)), len(self._actors))
        self._priority = dict(enumerate(order))
        self._lowest = 0
        self._changes = set(changes)
        self.calls = 0
        self._queues: list[deque[tuple[Any, ...]]] = [deque() for _ in self._actors]
        self._values: list[Any] = [None] * len(self._actors)
        self._came: dict[Operation, int] = {}
        self._woken: set[int] = set()
        self._send_again()
        self._choose_first_come()

    def _send_again(self) -> None:
        """The order of messages that are there already is that of priorities, too."""
        waiting: dict[int, deque[Operation]] = {}
        for messages in self._exchange.unmatched().values():
            for one in messages:
                waiting.setdefault(one.sender[0], deque()).append(one.sender)
        for rank, sent in waiting.items():
            waiting[rank] = deque(sorted(sent))
        while waiting:
            rank = max(waiting, key=self._priority.__getitem__)
            if self._is_change():
                self._put_below(self._actors[rank])
                continue
            self.calls += 1
            self._came[waiting[rank].popleft()] = self.calls
            if not waiting[rank]:
                del waiting[rank]

    def _is_change(self) -> bool:
        found = self.calls in self._changes
        self._changes.discard(self.calls)
        return found

    def _step(self) -> None:
        able = [actor for actor in self._actors if self._can_go_on(actor)]
        if not able:
            self._pass_time()
            return
        chosen = max(able, key=lambda actor: self._priority[actor.rank])
        if self._is_change():
            self._put_below(chosen)
            return
        queue = self._queues[chosen.rank]
        if not queue:
            if chosen.state == MATCHES:
                self._end_wait(chosen)
            self._woken.discard(chosen.rank)
            chosen.state = RUNS
            self._ask(chosen, self._values[chosen.rank])
            self._values[chosen.rank] = None
            queue += chosen.moment.batch
        self._call(chosen, queue.popleft())

    def _call(self, actor: Actor, call: tuple[Any, ...]) -> None:
        self.calls += 1
        if self.calls > ENOUGH:
            raise Over("limit", BEYOND, "calls without end")
        if call[0] == "direct_send":
            self._came[actor.rank, call[1]] = self.calls
        self._values[actor.rank] = self._do(actor, call)
        self._choose_first_come()

    def _choose_first_come(self) -> None:
        exchange = self._exchange
        exchange.match_certain()
        before = len(exchange.events)
        while exchange.take_first_come(self._came):
            exchange.match_certain()
        for event in exchange.events[before:]:
            if event.value == (NOTHING,):
                self._put_below(self._actors[event.key[0]])
            elif event.kind == SERVE and event.offered:  # it has read in vain
                self._put_below(self._actors[event.value[1]])

    def _put_below(self, actor: Actor) -> None:
        self._lowest -= 1
        self._priority[actor.rank] = self._lowest

    def _can_go_on(self, actor: Actor) -> bool:
        if self._queues[actor.rank]:
            return True
        woken = actor.rank in self._woken or bool(actor.news)
        if actor.state == MATCHES:
            return not self._exchange.waits(actor.rank) or (not actor.number and woken)
        if actor.state == LISTENS:
            return woken
        if actor.state == SLEEPS:
            return self._time >= actor.until
        return actor.state != ENDED

    def _wake(self, actor: Actor) -> None:
        """It goes on when its priority lets it."""
        self._woken.add(actor.rank)
