"""Which operations of windows commute: what is known of the bytes that a program accesses.

Bytes of a rank's part of a window that are only read, or only accumulated to in a way in which no
order can be seen, need no order. All other operations on bytes in common do. Which these are is
known only when the program has done it. So it is learnt: `Parts` has for each part the pieces that
were accessed, and how. Who accesses a piece in another way changes what commutes, and the search
begins again with that (`Learnt`).

Pure. What is known only grows coarser, so this ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ompy.data.layout import Layout
from ompy.frameworks.osc_base.headers import OPERATIONS, Command, Kind, parsed
from ompy.frameworks.osc_base.layouts import decode_layout
from ompy.runtime.exploration.events import Diverged

READ: Final = "read"  # how a piece is accessed: nobody changes it
ORDERED: Final = "ordered"  # somebody does, in an order that can be seen
LOCKS: Final = -1  # class of requests for a part's lock; no address is that
FREE: Final = -2  # class of what commutes with all
HEEDED: Final = -3  # in plain values; arbitrary: no class
CANCELLED: Final = -4  # likewise
LOADED: Final = -5  # likewise
UNTRIED: Final = -6  # likewise

# accumulates whose order cannot be seen: results are exact, and the operation is commutative and
# associative (MPI 4.1 6.9.2); those of floating point round, and NaN has no order
_COMMUTING: Final = frozenset(
    f"MPI_{name}"
    for name in ("SUM", "PROD", "MAX", "MIN", "LAND", "LOR", "LXOR", "BAND", "BOR", "BXOR")
)
_WHOLE_NUMBERS: Final = frozenset("?bBhHiIlLqQ")  # NumPy's type characters
# displacements from here on are addresses, in a dynamic window; arbitrary: no part is so large here
ADDRESSES: Final = 1 << 32
_NO_OP: Final = "MPI_NO_OP"
_DATA: Final = frozenset({Kind.PUT, Kind.GET, Kind.ACCUMULATE, Kind.FETCH, Kind.SWAP})

Place = tuple[int, int]  # context id, and a rank of the job


class Learnt(Diverged):
    """Operations do not commute that were taken to. Its argument is what is known now."""


class Access(NamedTuple):
    """What a command does to the target's memory.

    Attributes:
        low, high: of the bytes it may touch, the first and the one behind the last.
        how: READ, ORDERED, or the operation and elements of an accumulate that commutes.
    """

    low: int
    high: int
    how: str


class Parts:
    """What is known of the parts of windows.

    Attributes:
        pieces: of each part: first byte, byte behind the last, and how it is accessed; in order.
        alone: parts whose lock somebody wants alone.
        shared: parts whose lock was wanted, by nobody alone.
        cancelled: receives that a rank cancels in some world, by rank and number.
        heeded: what a rank does depends on all that its parts have served, as it looks at their
            memory and no call orders that. Not all orders of both are tried then.
        loaded: others change a part under a lock that they share. Its rank may load what they
            change at any time, which nobody sees.
        untried: what matters to the program and is not tried, beside windows.
    """

    def __init__(self, plain: Sequence[Any] = ()) -> None:
        """What `plain` has said, or nothing.

        Raises:
            TypeError, ValueError: it has said nothing of the kind.
        """
        self.pieces: dict[Place, list[tuple[int, int, str]]] = {}
        self.alone: set[Place] = set()
        self.shared: set[Place] = set()
        self.cancelled: set[tuple[int, int]] = set()
        self.heeded = self.loaded = False
        self.untried: set[str] = set()
        for context, rank, low, high, how in plain:
            place = int(context), int(rank)
            if low in {HEEDED, LOADED}:
                self._note(low)
            elif low == UNTRIED:
                self.untried.add(str(how))
            elif low == CANCELLED:
                self.cancelled.add((int(rank), int(high)))
            elif low == LOCKS:
                (self.alone if how == ORDERED else self.shared).add(place)
            else:
                self.pieces.setdefault(place, []).append((int(low), int(high), str(how)))

    def plain(self) -> list[list[Any]]:
        """As plain values."""
        pieces = [[*place, *one] for place, of in self.pieces.items() for one in of]
        locks = [[*place, LOCKS, 0, ORDERED] for place in self.alone]
        locks += [[*place, LOCKS, 0, READ] for place in self.shared]
        locks += [[0, rank, CANCELLED, number, ORDERED] for rank, number in self.cancelled]
        locks += [[0, 0, UNTRIED, 0, what] for what in self.untried]
        noted = {HEEDED: self.heeded, LOADED: self.loaded}
        return sorted(pieces + locks + [[0, 0, one, 0, ORDERED] for one in noted if noted[one]])

    def _note(self, what: int) -> None:
        self.heeded |= what == HEEDED
        self.loaded |= what == LOADED

    def absorb(self, plain: Iterable[Any]) -> None:
        """Learn what a world of another process has.

        Raises:
            Learnt: what commutes is something else now.
        """
        changed = False
        for context, rank, low, high, how in plain:
            place = context, rank
            if low in {HEEDED, LOADED}:
                self._note(low)
            elif low == UNTRIED:
                self.untried.add(how)
            elif low == CANCELLED:
                changed = changed or (rank, high) not in self.cancelled
                self.cancelled.add((rank, high))
            elif low == LOCKS:
                changed = self._learn_lock(place, alone=how == ORDERED) or changed
            else:
                changed = self._learn(place, Access(low, high, how)) or changed
        if changed:
            raise Learnt(self.plain())

    def learn_cancelled(self, receive: tuple[int, int]) -> None:
        """A receive may be cancelled, which was not known when it was posted.

        Raises:
            Learnt: always.
        """
        self.cancelled.add(receive)
        raise Learnt(self.plain())

    def class_of(self, place: Place, command: Command) -> int:
        """Commands of one class at a part need an order: LOCKS, or a first byte. FREE needs none.

        Raises:
            Learnt: what commutes is something else now.
        """
        if command.kind in {Kind.LOCK, Kind.LOCK_SHARED}:
            changed = self._learn_lock(place, alone=command.kind is Kind.LOCK)
            found = LOCKS if place in self.alone else FREE
        elif command.kind in _DATA and command.number:
            access = access_of(command)
            changed = self._learn(place, access)
            low, _, how = self._piece(place, access)
            found = low if how == ORDERED else FREE
        else:
            return FREE
        if changed:
            raise Learnt(self.plain())
        return found

    def _learn_lock(self, place: Place, *, alone: bool) -> bool:
        """Whether that changes anything of what was done before."""
        if place in self.alone:
            return False
        if not alone:
            self.shared.add(place)
            return False
        self.alone.add(place)
        changed = place in self.shared
        self.shared.discard(place)
        return changed

    def _piece(self, place: Place, access: Access) -> tuple[int, int, str]:
        of = self.pieces[place]
        return next(one for one in of if one[0] <= access.low and access.high <= one[1])

    def _learn(self, place: Place, access: Access) -> bool:
        """Whether that changes anything of what was done before."""
        of = self.pieces.setdefault(place, [])
        common = [one for one in of if one[0] < access.high and access.low < one[1]]
        if len(common) == 1:
            low, high, how = common[0]
            if low <= access.low and access.high <= high and how in {ORDERED, access.how}:
                return False
        low = min([access.low, *(one[0] for one in common)])
        high = max([access.high, *(one[1] for one in common)])
        ways = {access.how, *(one[2] for one in common)}
        made = (low, high, access.how if len(ways) == 1 else ORDERED)
        self.pieces[place] = sorted([*(one for one in of if one not in common), made])
        return bool(common)


def access_of(command: Command) -> Access:
    """What a command touches, and how; one with data, or that fetches some."""
    layout = layout_of(bytes(command.layout))
    first, size = layout.span(command.number)
    low = command.displacement + first
    high = low + max(size, 1)
    if low >= ADDRESSES:  # it has others when it is run again: they tell nothing apart
        low, high = 0, ADDRESSES
    operation = OPERATIONS[command.operation]
    reads = command.kind is Kind.GET
    if command.kind in {Kind.ACCUMULATE, Kind.FETCH} and operation == _NO_OP:
        reads = True
    if reads:
        return Access(low, high, READ)
    commutes = command.kind is Kind.ACCUMULATE and operation in _COMMUTING
    exact = layout.contiguous and layout.format in _WHOLE_NUMBERS
    if commutes and exact and high < ADDRESSES:
        # elements lie on one grid only if they begin alike
        return Access(low, high, f"{operation} {layout.format} {low % max(layout.size, 1)}")
    return Access(low, high, ORDERED)


@lru_cache(maxsize=256)  # arbitrary: a program has some few
def layout_of(data: bytes) -> Layout:
    """The layout that these bytes are."""
    return decode_layout(memoryview(data))


@lru_cache(maxsize=1024)  # arbitrary: worlds send the same commands again and again
def command_of(data: bytes) -> Command:
    """The command that these bytes are."""
    return parsed(memoryview(data))


def changes(command: Command) -> bool:
    """Whether a command changes memory; of a SWAP its answer says."""
    if command.kind in {Kind.ACCUMULATE, Kind.FETCH}:
        return OPERATIONS[command.operation] != _NO_OP
    return command.kind is Kind.PUT
