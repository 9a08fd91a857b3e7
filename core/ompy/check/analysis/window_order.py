"""What happened before what, with what windows order besides messages and collectives."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Final, Protocol

from ompy.check.analysis.window_history import Access, History, Meeting

SEARCHES: Final = 4000  # through all meetings; arbitrary: seconds
CELL: Final = 8  # bytes; arbitrary: what a program synchronizes by is not larger, mostly
CELLS: Final = 64  # of one access; arbitrary, likewise


class Order(Protocol):
    """By messages and collectives: `analysis/order.py`."""

    def before(self, rank: int, index: int, other: int, at: int) -> bool:
        """Whether an entry of a rank is over before one of another rank begins."""


class Ordered:
    """The same, with meetings of some ranks as well."""

    def __init__(self, order: Order, meetings: Iterable[Meeting]) -> None:
        self._order = order
        self._meetings = list(meetings)
        self._known: dict[tuple[int, int], dict[int, int]] = {}
        self._sources: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for number, meeting in enumerate(self._meetings):
            for rank, index in meeting.before:
                self._sources[rank].append((index, number))
        for sources in self._sources.values():
            sources.sort()
        self.exhausted = False

    def before(self, rank: int, index: int | None, other: int, at: int) -> bool:
        """Whether an entry of a rank is before one of another; None is never."""
        if index is None:
            return False
        if rank == other:
            return index <= at
        if self._order.before(rank, index, other, at):
            return True
        if not self._meetings:
            return False
        for each, first in self._reached(rank, index).items():
            if first <= at if each == other else self._order.before(each, first, other, at):
                return True
        return False

    def _reached(self, rank: int, index: int) -> dict[int, int]:
        """By rank the first entry behind a meeting that is known to come after an entry."""
        known = self._known.get((rank, index))
        if known is not None:
            return known
        if len(self._known) >= SEARCHES:
            self.exhausted = True
            return {}
        found: dict[int, int] = {}
        taken: dict[int, int] = {each: len(all_) for each, all_ in self._sources.items()}
        met: set[int] = set()
        ahead = [(rank, index)]
        while ahead:
            here, at = ahead.pop()
            for each, sources in self._sources.items():
                first = self._first(here, at, each, taken[each])
                new = sources[first : taken[each]]
                taken[each] = min(first, taken[each])
                for other, entry in self._behind(each, new, met):
                    if entry < found.get(other, entry + 1):
                        found[other] = entry
                        ahead.append((other, entry))
        self._known[rank, index] = found
        return found

    def _behind(
        self, _rank: int, sources: Iterable[tuple[int, int]], met: set[int]
    ) -> Iterator[tuple[int, int]]:
        """The entries behind meetings at which a rank was."""
        for _, number in sources:
            if number not in met:
                met.add(number)
                yield from self._meetings[number].after

    def _first(self, here: int, at: int, other: int, end: int) -> int:
        """The place of the first source of a rank that comes after an entry; `end` for none."""
        sources = self._sources[other]
        if here == other:
            return min(bisect_left(sources, (at, -1)), end)
        low, high = 0, end
        while low < high:
            middle = (low + high) // 2
            if self._order.before(here, at, other, sources[middle][0]):
                high = middle
            else:
                low = middle + 1
        return low


class Possible(Ordered):
    """What may have been before what: who looks at a place may have seen any change of it.

    But none that is known to have been made later.
    """

    def __init__(self, order: Ordered, meetings: Iterable[Meeting]) -> None:
        super().__init__(order, meetings)
        self._looks: list[dict[int, list[int]]] = []
        for meeting in self._meetings:
            by_rank: dict[int, list[int]] = defaultdict(list)
            for rank, index in meeting.after:
                by_rank[rank].append(index)
            self._looks.append({rank: sorted(all_) for rank, all_ in by_rank.items()})

    def _behind(
        self, rank: int, sources: Iterable[tuple[int, int]], _met: set[int]
    ) -> Iterator[tuple[int, int]]:
        for change, number in sources:
            for other, looks in self._looks[number].items():
                if other != rank:
                    first = self._first_after(rank, change, other, looks)
                    if first is not None:
                        yield other, first

    def _first_after(self, rank: int, change: int, other: int, looks: list[int]) -> int | None:
        """The first look that is not known to be before a change."""
        low, high = 0, len(looks)
        while low < high:
            middle = (low + high) // 2
            if self._order.before(other, looks[middle], rank, change):
                low = middle + 1
            else:
                high = middle
        return looks[low] if low < len(looks) else None


def possible_meetings(history: History, unawaited: Collection[str] = ()) -> list[Meeting]:
    """What may have ordered ranks through memory: who changes a place, and who looks at it.

    In which order they did is not known, so whoever looks may have seen any change.

    Args:
        history: of all windows.
        unawaited: windows with shared memory where nobody waits until another one stores there.
    """
    changes: dict[tuple[str, int, int], list[tuple[int, int]]] = defaultdict(list)
    looks: dict[tuple[str, int, int], list[tuple[int, int]]] = defaultdict(list)
    into: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for (key, target), accesses in history.accesses.items():
        for access in accesses:
            if not access.passive and not access.local:
                continue
            if access.local and key in unawaited:
                continue
            entry = (access.rank, access.index)
            if access.writes and not access.local:
                into[key, target].append(entry)
            for cell in _cells(access):
                place = (key, target, cell)
                if access.writes:
                    changes[place].append(entry)
                if access.what in {"acc", "get", "load"}:
                    # what it has seen matters behind it
                    looks[place].append((access.rank, access.index + 1))
    found = [
        Meeting(tuple(entries), tuple(looks[place]))
        for place, entries in changes.items()
        if place in looks
    ]
    return found + _own_looks(history, into)


def _cells(access: Access) -> Iterator[int]:
    for low, high in access.ranges:
        yield from range(low // CELL, min((high - 1) // CELL, low // CELL + CELLS) + 1)


def _own_looks(
    history: History, into: dict[tuple[str, int], list[tuple[int, int]]]
) -> list[Meeting]:
    """An owner may look at its memory at any time, and not all of its loads are seen.

    So what it does next in any window may be an answer to what others have put there.
    """
    answers: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for accesses in history.accesses.values():
        for access in accesses:
            answers[access.rank].append((access.rank, access.index))
    found = []
    for (key, target), entries in into.items():
        owner = history.ranks.get((key, target), -1)
        looks = [
            (owner, index)
            for index, what, targets in history.calls.get((key, owner), ())
            if what == "sync" or (what == "lock" and target in targets)
        ]
        found.append(Meeting(tuple(entries), (*looks, *answers.get(owner, ()))))
    return found
