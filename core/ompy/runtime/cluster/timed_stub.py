"""Acts for a rank of a described cluster: its calls take the time that the cluster says."""

from __future__ import annotations

from typing import Any

from ompy.runtime.cluster.timed_exchange import Message, TimedExchange
from ompy.runtime.exploration.events import FROM, NOTHING
from ompy.runtime.simulation.stub import RankStub


class TimedStub(RankStub):
    """One rank.

    Attributes:
        timed: all messages.
        ended: ns; when it had finalized, or was at its end.
        computed: ns that it has slept or computed, or looked at clocks.
    """

    def __init__(self, timed: TimedExchange, *arguments: Any) -> None:
        """Act for a process; the rest as for a `RankStub`."""
        super().__init__(*arguments)
        self.timed = timed
        self.ended = 0
        self.computed = 0

    # what takes time

    def do_spend(self, duration: int) -> None:
        """Sleep, compute or look at a clock."""
        self.computed += duration
        super().do_spend(duration)

    def do_finalized(self, calls: dict[str, Any]) -> None:
        """It has finalized."""
        super().do_finalized(calls)
        self.ended = self._engine.now()

    def do_end(self, code: int, report: dict[str, Any]) -> None:
        """It is at its end."""
        self.ended = self.ended or self._engine.now()
        super().do_end(code, report)

    # messages

    def do_direct_send(
        self,
        number: int,
        to: tuple[int, int],
        source: int,
        tag: int,
        data: bytes,
        synchronous: bool,
        served: bool,
        waited: bool,
        site: str,
        ready: bool = False,
    ) -> None:
        """A message: first the overhead, then it leaves."""
        del served, site, ready
        busy = max(self.timed.busy_until(self.rank) - self._engine.now(), 0)
        overhead = self.timed.costs(self.rank, to[1], len(data)).overhead
        if busy + overhead:
            self._engine.spend(busy + overhead)
        self.timed.send_message(
            (self.rank, number), to, source, tag, data, waited=waited, synchronous=synchronous
        )

    def do_direct_receive(
        self, number: int, context: int, source: int, tag: int, served: bool, site: str
    ) -> None:
        """A receive."""
        del served, site
        self.timed.post_receive((self.rank, number), context, source, tag)

    def do_direct_cancel(self, number: int, receive: int, site: str) -> bool | None:
        """Whether a receive is cancelled."""
        del number, site
        return self.timed.cancel_receive((self.rank, receive))

    def do_direct_forget(self, context: int) -> None:
        """A communicator is freed."""
        self.timed.forget(context, self.rank)

    def do_direct_wait(self, number: int, wanted: list[int], others: bool, site: str) -> None:
        """Wait for operations, or others, or news; a timer of the rank's ends it, too."""
        del number, site
        here = self.timed.begin_wait(self.rank, wanted, others=others)
        if not here and (wanted or not self.news):
            self._engine.pause("a message")
        self.timed.end_wait(self.rank)
        self._take_news()

    def do_direct_poll(self, number: int, site: str, further: bool, only: int = 0) -> None:
        """Look what is complete."""
        del number, site, further
        self._spend_poll(self.timed.take_arrived(self.rank))
        self._take_news()

    def do_direct_look(
        self,
        number: int,
        context: int,
        source: int,
        tag: int,
        takes: bool,
        waits: bool,
        site: str,
    ) -> None:
        """Probe."""
        del site
        if not waits:
            self._spend_poll(0)
        found = self.timed.find_message(self.rank, context, source, tag, takes=takes)
        if found is None and waits:
            self.timed.begin_wait(self.rank, (), probes=True)
            self._engine.pause("a message")
            self.timed.end_wait(self.rank)
            found = self.timed.find_message(self.rank, context, source, tag, takes=takes)
        if found is not None:
            self._tell_found(number, found, takes=takes)
        elif not waits:
            self.timed.tell_rank(self.rank, (NOTHING, number))
        self._take_news()

    def _tell_found(self, number: int, found: Message, *, takes: bool) -> None:
        said = (FROM, number, found.source, found.tag, len(found.data))
        if takes:
            while not found.whole:
                self._engine.pause("the bytes of a message")
            self._engine.spend(found.costs.overhead)
            said = (*said, found.data)  # type: ignore[assignment]
        self.timed.tell_rank(self.rank, said)

    def _spend_poll(self, overhead: int) -> None:
        self._engine.spend(self.timed.poll_cost + overhead)

    def _take_news(self) -> None:
        self.news += [("direct", *told) for told in self.timed.news(self.rank)]
