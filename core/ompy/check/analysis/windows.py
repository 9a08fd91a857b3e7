"""Accesses to windows that conflict, and that nothing orders (MPI 4.1, 12.3 and 12.7).

Two accesses are ordered where one is complete before the other begins. An access is complete with
the synchronization that closes it, not with its call. What happened before what follows from the
messages and collectives, and from the windows' own fences and posts. Sections of an exclusive lock
never overlap. Whatever a program may have ordered through memory, as with a lock of its own made of
atomic operations, counts as ordered: nothing is said where something is not known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ompy.check.analysis.window_history import Access, History, Ranges, history_of
from ompy.check.analysis.window_order import Order, Ordered, Possible, possible_meetings
from ompy.check.findings import Found
from ompy.check.logs import Record
from ompy.check.program_text import may_wait_in_loop

PAIRS: Final = 50_000  # of lines' accesses that are compared in one part; arbitrary: seconds
INSTANCES: Final = 64  # of one line's accesses, the last ones; arbitrary
NEAR: Final = 16  # accesses that are concurrent with one, and looked at; arbitrary
NOPUT: Final = 4  # MODE_NOPUT
_UNORDERED: Final = (
    "MPI 4.1, 12.3 and 12.7: what comes of conflicting accesses to the same memory is undefined "
    "unless the first is complete, by a synchronization of the window, before the second begins"
)
_WORDS: Final = {"put": "writes", "get": "reads", "store": "writes", "load": "reads"}


def window_findings(records: Mapping[int, Record], order: Order) -> list[Found]:
    """The conflicting accesses of all windows.

    Args:
        records: of all ranks.
        order: what happened before what, by messages and collectives.
    """
    if any(record.threads or ("cut",) in record.events for record in records.values()):
        return []  # what ordered the calls is not known
    history = history_of(records)
    if not history.accesses:
        return []
    return _Search(records, history, order).compare_parts()


class _Search:
    """Compares the accesses of all parts of all windows."""

    def __init__(self, records: Mapping[int, Record], history: History, order: Order) -> None:
        self._records = records
        self._history = history
        self._ordered = Ordered(order, history.meetings())
        self._possible: Possible | None = None
        self._told: set[tuple[tuple[int, int], ...]] = set()
        self._found: list[Found] = []
        self._waits: set[str] = set()  # windows by whose memory members may wait for each other

    def compare_parts(self) -> list[Found]:
        self._find_waits()
        for (key, target), accesses in self._history.accesses.items():
            if key not in self._history.uncertain:
                self._part(self._clear(accesses))
                self._promises(key, target, accesses)
        return self._found

    def _find_waits(self) -> None:
        """Whether a rank may wait until another one has stored something in shared memory."""
        shared = self._history.shared
        if not shared:
            return
        files = {file for record in self._records.values() for file in record.files}
        places = (each for record in self._records.values() for each in record.places.values())
        files |= {place.file for place in places}
        if any(may_wait_in_loop(file) for file in files):
            self._waits |= shared
        for (key, _), accesses in self._history.accesses.items():
            if key in shared and any(access.op == "poll" for access in accesses):
                self._waits.add(key)

    def _part(self, accesses: list[Access]) -> None:
        """Compare the accesses to one part."""
        left = PAIRS
        for ones, others in _overlapping(accesses):
            left -= 1
            if left < 0 or self._ordered.exhausted:
                return
            key = tuple(sorted((each[0].rank, each[0].site) for each in (ones, others)))
            if key in self._told or not _conflict(ones[0], others[0]):
                continue
            pair = self._race(ones, others)
            if pair is not None:
                self._told.add(key)
                self._found.append(self._told_of(*pair))

    def _race(self, ones: list[Access], others: list[Access]) -> tuple[Access, Access] | None:
        """Two of the accesses of two lines that nothing orders."""
        for one in reversed(ones[-INSTANCES:]):
            first = _first(others, lambda each: not self._before(each, one))  # noqa: B023
            last = _first(others, lambda each: self._before(one, each))  # noqa: B023
            for other in reversed(others[max(first, last - NEAR) : last]):
                if one is other or self._are_apart(one, other):
                    continue
                return one, other
        return None

    def _before(self, one: Access, other: Access) -> bool:
        return self._ordered.before(one.rank, one.done, other.rank, other.start)

    def _are_apart(self, one: Access, other: Access) -> bool:
        """Whether something does, or may, keep two accesses from being concurrent."""
        if one.rank == other.rank:
            return self._before(one, other) or self._before(other, one)
        mine, theirs = one.section, other.section
        if mine is not None and theirs is not None and (mine.exclusive or theirs.exclusive):
            return True
        if self._possible is None:
            unawaited = self._history.shared - self._waits
            self._possible = Possible(self._ordered, possible_meetings(self._history, unawaited))
        possible = self._possible
        apart = possible.before(one.rank, one.done, other.rank, other.start)
        apart = apart or possible.before(other.rank, other.done, one.rank, one.start)
        return apart or possible.exhausted or self._ordered.exhausted

    def _clear(self, accesses: list[Access]) -> list[Access]:
        """Leave out of changed memory what may have been put there."""
        written: dict[int, list[Access]] = defaultdict(list)
        for each in accesses:
            if each.what in {"put", "acc"}:
                written[each.fence].append(each)
        found = []
        for access in accesses:
            if access.op == "poll" or (access.key in self._waits and _is_ordered_by_memory(access)):
                continue
            if access.what == "store" and access.call:
                epochs = {access.fence, -1} if access.fence >= 0 else set(written)
                for other in (each for epoch in epochs for each in written.get(epoch, ())):
                    access.ranges = without(access.ranges, other.ranges)
            if access.ranges:
                found.append(access)
        return found

    def _told_of(self, one: Access, other: Access) -> Found:
        first, second = sorted((one, other), key=lambda each: (_guilt(each), each.rank, each.index))
        low, high = common(one.ranges, other.ranges)
        owner = self._history.ranks.get((one.key, one.target), one.target)
        where = f"bytes {low} to {high} of rank {owner}'s part of the window"
        text = f"{_does(first)} {where} while {_does(second)} them, and nothing orders the two. "
        text += f"{_UNORDERED}. {_remedy(first, second)}"
        sites = tuple(
            self._records[each.rank].site(each.site, each.call) for each in (first, second)
        )
        return Found("rma-race", text, sites)

    def _promises(self, key: str, target: int, accesses: list[Access]) -> None:
        """What is put where the owner has said that nothing will be."""
        owner = self._history.ranks.get((key, target))
        if owner is None:
            return
        told = set()
        for access in accesses:
            promise = self._history.modes.get((key, target, access.fence))
            if promise is None or access.what not in {"put", "acc"} or not promise[0] & NOPUT:
                continue
            _, site, call = promise
            if (site, access.site) in told:
                continue
            told.add((site, access.site))
            text = (
                f"rank {owner} says MODE_NOPUT to {call}, but rank {access.rank}'s {access.call} "
                "changes its memory in the epoch that begins there. MPI 4.1, 12.5.5: leave the "
                "assertion out where others put or accumulate"
            )
            places = (
                self._records[owner].site(site, call),
                self._records[access.rank].site(access.site, access.call),
            )
            self._found.append(Found("epoch", text, places))


def _guilt(access: Access) -> int:
    """Loads and stores first: they are what a program forgets."""
    return 0 if access.local else 1


def _does(access: Access) -> str:
    if access.what == "acc":
        name = access.op.partition("/")[0]
        return f"rank {access.rank}'s {access.call} ({name}) changes"
    if access.local and not access.call:
        return f"rank {access.rank} itself {_WORDS[access.what]}"
    if access.local:
        return f"rank {access.rank} itself has changed, in the epoch that {access.call} ends,"
    return f"rank {access.rank}'s {access.call} {_WORDS[access.what]}"


def _is_ordered_by_memory(access: Access) -> bool:
    """Whether who waits for a store may know that it is over: not in an epoch of all members."""
    return access.local or access.passive


def _remedy(one: Access, other: Access) -> str:
    if one.local and other.local:
        return "Call Sync, a barrier and Sync between them"
    if one.rank == other.rank and not one.local and not other.local:
        return "Call Flush, or end the epoch, between them"
    if one.what == other.what == "acc":
        return "Use the same operation and the same basic type for both, or end the epoch between"
    if one.local or other.local:
        return (
            "Touch the memory itself only when the epoch of the others has ended (behind the next "
            "Fence or Wait, or behind a barrier after their Unlock), or under an exclusive lock"
        )
    if one.passive or other.passive:
        return "Use LOCK_EXCLUSIVE, or Accumulate with one operation for both"
    return "Put a Fence between them, or use Accumulate with one operation for both"


def _conflict(one: Access, other: Access) -> bool:
    """Whether two accesses to the same bytes must not be concurrent."""
    if one.local and other.local and one.rank == other.rank:
        return False
    kinds = {one.what, other.what}
    if kinds == {"acc"}:
        return one.rank != other.rank and not _atomic_together(one, other)
    return one.writes or other.writes


def _atomic_together(one: Access, other: Access) -> bool:
    """Whether two accumulates are atomic to each other (MPI 4.1, 12.7.1)."""
    (name, _, kind), (other_name, _, other_kind) = (each.op.partition("/") for each in (one, other))
    if kind != other_kind:
        return False
    size = int(kind.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ?") or 0)
    if size and (one.ranges[0][0] - other.ranges[0][0]) % size:
        return False
    return name == other_name or bool({name, other_name} & {"NO_OP", "CAS"})


def common(ranges: Ranges, others: Ranges) -> tuple[int, int]:
    """The first bytes that both have; (0, 0) for none."""
    left = right = 0
    while left < len(ranges) and right < len(others):
        low = max(ranges[left][0], others[right][0])
        high = min(ranges[left][1], others[right][1])
        if low < high:
            return low, high
        if ranges[left][1] <= others[right][1]:
            left += 1
        else:
            right += 1
    return 0, 0


def without(ranges: Ranges, others: Ranges) -> Ranges:
    """Bytes that the first has and the second has not."""
    left = list(ranges)
    for low, high in others:
        rest = []
        for begin, end in left:
            if high <= begin or end <= low:
                rest.append((begin, end))
                continue
            if begin < low:
                rest.append((begin, low))
            if high < end:
                rest.append((high, end))
        left = rest
    return tuple(left)


Line = list[Access]  # accesses of one line of one rank to the same bytes, as they came


def _overlapping(accesses: list[Access]) -> Iterator[tuple[Line, Line]]:
    """Pairs of lines whose accesses share bytes; those in different epochs of fences left out."""
    by_epoch: dict[int, list[Access]] = defaultdict(list)
    for access in accesses:
        by_epoch[access.fence].append(access)
    outside = _lines(by_epoch.pop(-1, []))
    yield from _sharing(outside, [])
    for each in by_epoch.values():
        yield from _sharing(_lines(each), outside)


def _lines(accesses: list[Access]) -> list[Line]:
    found: dict[tuple[object, ...], Line] = defaultdict(list)
    for access in sorted(accesses, key=lambda each: each.start):
        key = (access.rank, access.site, access.what, access.op, access.passive, access.ranges)
        found[key].append(access)
    return list(found.values())


def _sharing(lines: list[Line], others: list[Line]) -> Iterator[tuple[Line, Line]]:
    """Pairs of lines that share bytes, one of the first kind at least; a line with itself too."""
    marked = [(line, True) for line in lines] + [(line, False) for line in others]
    marked.sort(key=lambda each: each[0][0].ranges[0][0])
    active: list[tuple[Line, bool]] = []
    for line, first in marked:
        ranges = line[0].ranges
        active = [each for each in active if each[0][0].ranges[-1][1] > ranges[0][0]]
        if first and len(line) > 1:
            yield line, line
        for other, other_first in active:
            if (first or other_first) and common(ranges, other[0].ranges) != (0, 0):
                yield other, line
        active.append((line, first))


def _first(accesses: Line, holds: Callable[[Access], bool]) -> int:
    """The place of the first access from which on something holds; their number for none."""
    low, high = 0, len(accesses)
    while low < high:
        middle = (low + high) // 2
        if holds(accesses[middle]):
            high = middle
        else:
            low = middle + 1
    return low
