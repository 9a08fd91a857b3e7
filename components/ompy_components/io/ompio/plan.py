"""Who does what in a collective access: aggregators, their parts of the file, and cycles.

All members know all views and are told all ranges, so each makes the same plan by itself.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.values import tell_all
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.io import Access, Outcome, problem_bytes
from ompy.frameworks.io_base.view import FileView

_RANGE: Final = Struct("<?qq")  # whether it was moved; first position, and after the last
BLOCK: Final = 4096  # bytes; Linux: a page, which two aggregators should not share


class Settings(NamedTuple):
    """How collective access is done.

    Attributes:
        per_host: most aggregators of a host.
        most: in all.
        buffer_size: bytes of the file that one of them has at a time.
        independent_from: average run in the file from which on there are none.
    """

    per_host: int
    most: int
    buffer_size: int
    independent_from: int

    def aggregators(self, communicator: Communicator) -> list[int]:
        """Ranks that read and write for the others: the first ones of each host, in turn."""
        by_host: dict[int, list[int]] = {}
        for rank, proc in enumerate(communicator.procs):
            by_host.setdefault(proc.node, []).append(rank)
        found = [
            ranks[place]
            for place in range(self.per_host)
            for ranks in by_host.values()
            if place < len(ranks)
        ]
        return sorted(found[: max(1, self.most)])


class Window(NamedTuple):
    """What an aggregator has in memory in one cycle.

    Attributes:
        owner: the aggregator.
        low, high: bytes of the file.
    """

    owner: int
    low: int
    high: int


Ranges = list[tuple[int, int]]


def ranges_of(
    exchange: Exchange, outcome: Outcome, access: Access, *, moved: bool
) -> Generator[None, None, tuple[Ranges | None, list[bytes]]]:
    """Steps of a schedule: the positions that each member still reads or writes, by rank.

    Args:
        exchange: the call's messages.
        outcome: of this rank, where its part has been moved.
        access: its part.
        moved: it has moved that.

    Returns:
        The ranges, of members that have moved theirs empty ones; None if all have. And what each
        says of its problem.
    """
    begin, end = access.begin, access.begin + (0 if moved else access.convertor.size)
    said = _RANGE.pack(moved, begin, end) + problem_bytes(outcome.problem)
    told = yield from tell_all(exchange, said)
    heard = [_RANGE.unpack_from(each) for each in told]
    ranges = None if all(each[0] for each in heard) else [each[1:] for each in heard]
    return ranges, [each[_RANGE.size :] for each in told]


class Plan:
    """A collective access.

    Attributes:
        views: of all members.
        ranges: positions that each member accesses.
    """

    def __init__(
        self,
        communicator: Communicator,
        views: Sequence[FileView],
        ranges: Sequence[tuple[int, int]],
        settings: Settings,
    ) -> None:
        self.views = views
        self.ranges = ranges
        busy = [rank for rank, (begin, end) in enumerate(ranges) if end > begin]
        self._low = min(views[rank].byte_at(ranges[rank][0]) for rank in busy)
        self._high = max(views[rank].byte_at(ranges[rank][1] - 1) + 1 for rank in busy)
        self._owners = settings.aggregators(communicator)
        share = -(-(self._high - self._low) // len(self._owners))
        self._share = -(-share // BLOCK) * BLOCK
        self._size = min(self._share, max(BLOCK, settings.buffer_size // BLOCK * BLOCK))

    def cycles(self) -> Iterator[list[Window]]:
        """The windows of all aggregators, cycle by cycle."""
        base = self._low // BLOCK * BLOCK  # so that windows begin with a block
        for start in range(0, self._share + BLOCK, self._size):
            found = []
            for place, owner in enumerate(self._owners):
                first = base + place * self._share
                low = max(first + start, self._low)
                last = (
                    base + (place + 1) * self._share
                    if place + 1 < len(self._owners)
                    else self._high
                )
                high = min(first + start + self._size, last, self._high)
                if low < high:
                    found.append(Window(owner, low, high))
            if found:
                yield found

    def part(self, rank: int, window: Window) -> tuple[int, int]:
        """The positions of a member that are in a window; none if both are equal."""
        begin, end = self.ranges[rank]
        if begin >= end:
            return 0, 0
        view = self.views[rank]
        first = max(begin, view.position_at(window.low))
        last = min(end, view.position_at(window.high))
        return (first, last) if first < last else (0, 0)
