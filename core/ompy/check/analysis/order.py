"""What happened before what, by vector clocks over the calls of all ranks.

A rank knows of another one's calls up to a number, the entry of its record. It learns by the end of
a receive what the sender knew at the send, and by the end of a collective call what those knew
whose data it has waited for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping

from ompy.check.analysis.matching import Messages
from ompy.check.logs import Comm, Record
from ompy.check.operations import FROM_LOWER, FROM_ROOT, TO_ROOT, stem_of

Clock = dict[int, int]
# a communicator's key, which of its collective calls, and which start of that (0 for others)
Call = tuple[str, int, int]


def awaited(stem: str, root: int, rank: int, ranks: Iterable[int]) -> list[int]:
    """The members whose data a member needs before its call can end, by their ranks."""
    if stem in FROM_ROOT:
        return [] if rank == root else [root]
    if stem in TO_ROOT:
        return list(ranks) if rank == root else []
    if stem in FROM_LOWER:
        return [each for each in ranks if each < rank]
    return list(ranks)


class Collective:
    """One member's collective call.

    Attributes:
        call: which; the same in all members.
        stem: its operation.
        root: rank of the root in the communicator.
        comm: the communicator.
        request: number of the request; 0 if the call waits.
    """

    __slots__ = ("call", "comm", "request", "root", "stem")

    def __init__(self, call: Call, stem: str, root: int, comm: Comm, request: int) -> None:
        self.call = call
        self.stem = stem
        self.root = root
        self.comm = comm
        self.request = request

    def started(self, request: int) -> Collective:
        """A persistent one, started once more: from there on it has this request."""
        key, number, start = self.call
        call = (key, number, start + 1)
        return Collective(call, self.stem, self.root, self.comm, request)

    def needed(self) -> list[int]:
        """The ranks of the job whose data it needs."""
        ranks = range(len(self.comm.own))
        return [
            self.comm.own[each]
            for each in awaited(self.stem, self.root, self.comm.rank, ranks)
            if each != self.comm.rank and 0 <= each < len(self.comm.own)
        ]


def collectives_of(record: Record) -> dict[int, Collective]:
    """The collective calls of a rank, starts of persistent ones too, by entries of its record."""
    found: dict[int, Collective] = {}
    counts: dict[str, int] = defaultdict(int)
    prepared: dict[int, Collective] = {}
    for index, event in enumerate(record.events):
        if event[0] == "start" and event[3] in prepared:
            made = prepared[event[3]] = prepared[event[3]].started(event[4])
            found[index] = made
        if event[0] != "coll":
            continue
        comm = record.comms.get(event[3])
        if comm is None or not comm.key:
            continue
        counts[comm.key] += 1
        call = (comm.key, counts[comm.key], 0)
        between = comm.own != comm.members
        stem = "barrier" if between else stem_of(event[4])
        found[index] = made = Collective(call, stem, event[5], comm, event[9])
        if event[4].endswith("_init"):
            prepared[made.request] = made
    return found


class Order:
    """Answers what happened before what."""

    def __init__(self, records: Mapping[int, Record], messages: Messages) -> None:
        """Go through all records once.

        Args:
            records: of all ranks.
            messages: matched.
        """
        self._history: dict[int, tuple[list[int], list[Clock]]] = {}
        self.known = not any(record.threads for record in records.values())
        if self.known:
            _Walk(records, messages, self._history).go_through()

    def before(self, rank: int, index: int, other: int, at: int) -> bool:
        """Whether an entry of a rank is over before an entry of another rank begins."""
        if rank == other:
            return index < at
        indices, clocks = self._history.get(other, ([], []))
        place = bisect_right(indices, at) - 1
        return place >= 0 and clocks[place].get(rank, -1) >= index


class _Walk:
    """Goes through the entries of all ranks in an order in which they could have been."""

    def __init__(
        self,
        records: Mapping[int, Record],
        messages: Messages,
        history: dict[int, tuple[list[int], list[Clock]]],
    ) -> None:
        self._records = records
        self._history = history
        self._at = dict.fromkeys(records, 0)
        self._clocks: dict[int, Clock] = {rank: {} for rank in records}
        self._sent: dict[tuple[int, int], Clock] = {}
        self._entered: dict[tuple[Call, int], Clock] = {}
        self._received = {
            (receive.rank, receive.over): (send.rank, send.place)
            for send, receive in messages.pairs
            if receive.over >= 0
        }
        self._colls = {rank: collectives_of(record) for rank, record in records.items()}
        self._requests = {
            rank: {each.request: each for each in colls.values() if each.request}
            for rank, colls in self._colls.items()
        }
        for rank in records:
            history[rank] = ([], [])

    def go_through(self) -> None:
        """As far as it goes."""
        moved = True
        while moved:
            moved = False
            for rank, record in self._records.items():
                while self._at[rank] < len(record.events) and self._step(rank, record):
                    self._at[rank] += 1
                    moved = True

    def _step(self, rank: int, record: Record) -> bool:
        """One entry, if all that it waits for has been."""
        index = self._at[rank]
        event = record.events[index]
        name = event[0]
        if name == "send":
            self._sent[rank, index] = self._now(rank, index)
        elif name in {"recv", "got"}:
            source = self._received.get((rank, index))
            if source is not None:
                if source not in self._sent:
                    return False
                self._learn(rank, index, [self._sent[source]])
        elif name in {"coll", "start"}:
            return self._collective(rank, index)
        elif name == "wait":
            for request in event[4]:
                coll = self._requests[rank].get(request)
                if coll is not None and not self._end_collective(rank, index, coll):
                    return False
        return True

    def _collective(self, rank: int, index: int) -> bool:
        coll = self._colls[rank].get(index)
        if coll is None:
            return True
        self._entered.setdefault((coll.call, rank), self._now(rank, index))
        return True if coll.request else self._end_collective(rank, index, coll)

    def _end_collective(self, rank: int, index: int, coll: Collective) -> bool:
        clocks = []
        for each in coll.needed():
            clock = self._entered.get((coll.call, each))
            if clock is None:
                return each not in self._records
            clocks.append(clock)
        self._learn(rank, index, clocks)
        return True

    def _now(self, rank: int, index: int) -> Clock:
        return {**self._clocks[rank], rank: index}

    def _learn(self, rank: int, index: int, clocks: Iterable[Clock]) -> None:
        known = dict(self._clocks[rank])
        for clock in clocks:
            for each, number in clock.items():
                if each != rank and known.get(each, -1) < number:
                    known[each] = number
        self._clocks[rank] = known
        indices, history = self._history[rank]
        indices.append(index)
        history.append(known)
