"""Persistent collective calls that are started, and waited for, in different orders.

They may be started in any order (MPI 4.1, 6.13). But a rank that waits for one before it starts the
next waits for ever for a member that does so the other way round: at least where the call
synchronizes, and a program may not rely on it that it does not (6.14). So the calls are run once
more: a start, or a nonblocking call, goes on at once; a wait for it, or a blocking call, ends when
all members have begun it; all else ends. Whoever stands still then stands in such a circle.

The wait at which a job stood still is in the record, too (`awaits`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ompy.check.analysis.order import Call, Collective, collectives_of
from ompy.check.findings import Found
from ompy.check.logs import Record


class _Standing(NamedTuple):
    """A rank that waits.

    Attributes:
        rank: of the job.
        coll: what for.
        entry: the entry by which it waits.
        missing: ranks that have not begun that.
    """

    rank: int
    coll: Collective
    entry: int
    missing: list[int]


def start_findings(records: Mapping[int, Record]) -> list[Found]:
    """At most one finding, as the rest follows from it."""
    if not any(event[0] == "start" for record in records.values() for event in record.events):
        return []
    whole = not any(record.threads or ("cut",) in record.events for record in records.values())
    return _Rerun(records).found() if whole else []


class _Rerun:
    """The second run."""

    def __init__(self, records: Mapping[int, Record]) -> None:
        self._records = records
        self._at = dict.fromkeys(records, 0)
        self._colls = {rank: collectives_of(record) for rank, record in records.items()}
        self._begun: dict[tuple[Call, int], int] = {
            (coll.call, rank): index
            for rank, colls in self._colls.items()
            for index, coll in colls.items()
        }
        self._requests = {
            rank: {coll.request: coll for coll in colls.values() if coll.request}
            for rank, colls in self._colls.items()
        }

    def found(self) -> list[Found]:
        """What stands still."""
        moved = True
        while moved:
            moved = False
            for rank in self._records:
                while self._standing(rank) is None and not self._is_over(rank):
                    self._at[rank] += 1
                    moved = True
        standing = {rank: self._standing(rank) for rank in self._records}
        waits = {rank: each for rank, each in standing.items() if each is not None}
        circle = _circle(waits)
        if any(each.coll.call[2] for each in circle):
            return [self._finding(circle)]
        return list(self._missing())

    def _is_over(self, rank: int) -> bool:
        return self._at[rank] >= len(self._records[rank].events)

    def _standing(self, rank: int) -> _Standing | None:
        """What a rank waits for; None: it goes on, or is over."""
        index, events = self._at[rank], self._records[rank].events
        if index >= len(events):
            return None
        for coll in self._awaited(rank, index, events[index]):
            missing = [each for each in self._members(coll) if not self._has_begun(each, coll)]
            if missing:
                return _Standing(rank, coll, index, missing)
        return None

    def _awaited(self, rank: int, index: int, event: tuple[Any, ...]) -> Iterator[Collective]:
        if event[0] == "coll" and not event[9] and index in self._colls[rank]:
            yield self._colls[rank][index]
        elif event[0] == "awaits" or (event[0] == "wait" and event[5] == "all"):
            requests = self._requests[rank]
            yield from (requests[number] for number in event[3] if number in requests)

    def _members(self, coll: Collective) -> Iterator[int]:
        """Those that have told."""
        every = dict.fromkeys((*coll.comm.own, *coll.comm.members))
        return (rank for rank in every if rank in self._records)

    def _has_begun(self, rank: int, coll: Collective) -> bool:
        index = self._begun.get((coll.call, rank))
        return index is not None and index <= self._at[rank]

    # what is said of it

    def _finding(self, circle: list[_Standing]) -> Found:
        said = []
        sites: list[dict[str, Any]] = []
        for each, other in zip(circle, (*circle[1:], circle[0]), strict=True):
            text = (
                f"rank {each.rank} waits for {self._text(each)}, before rank {other.rank} starts it"
            )
            said.append(text if each.coll.call[2] else text.replace("starts", "makes"))
            sites += self._sites(each)
        message = (
            f"each waits before the other has come so far: {'; '.join(said)}. MPI 4.1, 6.13 and "
            "6.14: persistent calls may be started in any order, but whoever waits for one before "
            "it starts the next needs all others to do so in the same order; start all of them "
            "before the first wait, or in one order everywhere"
        )
        return Found("collective-order", message, tuple(sites))

    def _text(self, standing: _Standing) -> str:
        """A call as people know it."""
        coll, record = standing.coll, self._records[standing.rank]
        _, number, start = coll.call
        kind = self._made(standing.rank, coll)[4]
        which = f"start {start} of " if start else ""
        name = record.comms[self._made(standing.rank, coll)[3]].name
        return f"{which}{kind}, collective call {number} of {name}"

    def _made(self, rank: int, coll: Collective) -> tuple[Any, ...]:
        """The entry by which a call was made."""
        key, number, _ = coll.call
        return self._records[rank].events[self._begun[(key, number, 0), rank]]

    def _sites(self, standing: _Standing) -> list[dict[str, Any]]:
        """Where it was begun, and where it is waited for."""
        record = self._records[standing.rank]
        begun = record.events[self._begun[standing.coll.call, standing.rank]]
        waits = record.events[standing.entry]
        sites = [*record.sites(*begun[1:3]), record.site(*waits[1:3])]
        return [site for place, site in enumerate(sites) if site not in sites[:place]]

    def _missing(self) -> Iterator[Found]:
        """A call that one member has started more often than one that has ended."""
        starts: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        for rank, colls in self._colls.items():
            for coll in colls.values():
                key, number, start = coll.call
                for each in self._members(coll) if start else ():
                    starts[key, number].setdefault(each, 0)
                if start:
                    starts[key, number][rank] = start
        for (key, number), counts in starts.items():
            few = [rank for rank in counts if self._records[rank].complete]
            least = min(few, key=counts.__getitem__, default=-1)
            most = max(counts, key=counts.__getitem__)
            if least >= 0 and counts[least] < counts[most]:
                yield self._too_few((key, number), (most, counts[most]), (least, counts[least]))
                return

    def _too_few(
        self, call: tuple[str, int], most: tuple[int, int], least: tuple[int, int]
    ) -> Found:
        rank, count = most
        index = self._begun[(*call, least[1] + 1), rank]
        record = self._records[rank]
        standing = _Standing(rank, self._colls[rank][index], index, [least[0]])
        message = (
            f"{self._text(standing)}, is made by rank {rank}, which starts it {count} times, and "
            f"rank {least[0]} starts it {least[1]} times. MPI 4.1, 6.13: all members start it "
            "equally often"
        )
        return Found("collective-order", message, record.sites(*record.events[index][1:3]))


def _circle(waits: Mapping[int, _Standing]) -> list[_Standing]:
    """Ranks each of which waits for the next; empty if there are none."""
    left = {rank: [each for each in waits[rank].missing if each in waits] for rank in waits}
    while lost := [rank for rank, others in left.items() if not others]:
        left = {
            rank: [each for each in others if each not in lost]
            for rank, others in left.items()
            if rank not in lost
        }
    path = list(left)[:1]  # of those that are left each waits for one that is
    while path:
        following = left[path[-1]][0]
        if following in path:
            return [waits[each] for each in path[path.index(following) :]]
        path.append(following)
    return []
