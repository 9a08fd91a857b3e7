"""Messages of one source that nobody has asked for yet, in order.

Whatever is taken out is the first of its tag, or the first of all: so a line in order, and the
first and last of each tag, find and remove in a step each, however many wait. Mostly the first
message is the one that is asked for: there is an index only once some were looked at in vain.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.constants import ANY_TAG

from ompy_components.pml.ob1.fragment import Fragment

SCANNED: Final = 8  # arbitrary: looking through so many costs about what an index does
_SCANNED: Final = SCANNED


@cclass
class Line:
    """Messages in order, found by their tag.

    Attributes:
        count: of them.
        first: of them, or None.
        passed: looked at in vain by `find`; the first one to fit costs nothing.
    """

    _firsts: dict[int, Fragment] | None
    _last: Fragment | None
    _lasts: dict[int, Fragment] | None
    count: int
    first: Fragment | None
    passed: U64
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self.count = 0
        self.passed = 0
        self.first = None
        self._last = None
        # the first and the last of each tag, once `SCANNED` were looked at in vain
        self._firsts = None
        self._lasts = None

    @cfunc
    def append(self, fragment: Fragment) -> None:
        """Put one behind all others."""
        last: Fragment | None = self._last
        fragment.before = last
        fragment.after = None
        if last is None:
            self.first = fragment
        else:
            last.after = fragment
        self._last = fragment
        self.count += 1
        if self._firsts is not None:
            self._index(fragment)

    @cfunc
    def find(self, tag: int) -> Fragment | None:
        """The first with this tag; it stays."""
        if self._firsts is not None:
            return self._indexed(tag)
        looked: int = 0
        fragment: Fragment | None = self.first
        while fragment is not None and fragment.tag != tag:
            looked += 1
            if looked > _SCANNED:
                return self._indexed(tag)
            self.passed += 1
            fragment = fragment.after
        return fragment

    @cfunc
    def _indexed(self, tag: int) -> Fragment | None:
        if self._firsts is None:
            self._index_all()
        assert self._firsts is not None
        return self._firsts.get(tag)

    @cfunc
    def remove(self, fragment: Fragment) -> None:
        """Take out one that is the first of its tag."""
        before: Fragment | None = fragment.before
        after: Fragment | None = fragment.after
        if before is None:
            self.first = after
        else:
            before.after = after
        if after is None:
            self._last = before
        else:
            after.before = before
        fragment.before = fragment.after = None  # no circle keeps it
        self.count -= 1
        if self._firsts is not None:
            self._unindex(fragment)

    @cfunc
    def _index_all(self) -> None:
        self._firsts, self._lasts = {}, {}
        fragment: Fragment | None = self.first
        while fragment is not None:
            self._index(fragment)
            fragment = fragment.after

    @cfunc
    def _index(self, fragment: Fragment) -> None:
        firsts: dict[int, Fragment] | None = self._firsts
        lasts: dict[int, Fragment] | None = self._lasts
        assert firsts is not None
        assert lasts is not None
        last: Fragment | None = lasts.get(fragment.tag)
        if last is None:
            firsts[fragment.tag] = fragment
        else:
            last.after_of_tag = fragment
        lasts[fragment.tag] = fragment
        fragment.after_of_tag = None

    @cfunc
    def _unindex(self, fragment: Fragment) -> None:
        firsts: dict[int, Fragment] | None = self._firsts
        lasts: dict[int, Fragment] | None = self._lasts
        assert firsts is not None
        assert lasts is not None
        assert firsts[fragment.tag] is fragment, "messages of one tag are taken in order"
        following: Fragment | None = fragment.after_of_tag
        if following is not None:
            firsts[fragment.tag] = following
            fragment.after_of_tag = None
        else:
            del firsts[fragment.tag]
            del lasts[fragment.tag]
        if not self.count:
            self._firsts = self._lasts = None


@cclass
class UnexpectedQueue:
    """What one source has sent in one communicator, and nobody has received.

    ANY_TAG takes users' tags only, the negative ones are internal: each kind has a line.

    Attributes:
        count: of them.
    """

    _internal: Line
    _users: Line
    count: int
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self.count = 0
        self._users = Line()
        self._internal = Line()

    @ccall
    def append(self, fragment: Fragment) -> None:
        """Put one behind all others."""
        line: Line = self._users if fragment.tag >= 0 else self._internal
        line.append(fragment)
        self.count += 1

    @ccall
    def find(self, wanted: int) -> Fragment | None:
        """The first that a receive for tag `wanted` takes, or None; it stays."""
        if wanted == ANY_TAG:
            return self._users.first
        line: Line = self._users if wanted >= 0 else self._internal
        return line.find(wanted)

    @ccall
    def remove(self, fragment: Fragment) -> None:
        """Take out one that `find` gave."""
        line: Line = self._users if fragment.tag >= 0 else self._internal
        line.remove(fragment)
        self.count -= 1

    @ccall
    def count_passed(self) -> int:
        """How many were looked at in vain."""
        return self._users.passed + self._internal.passed

    def members(self) -> Iterator[Fragment]:
        """All of them; those with users' tags first."""
        for line in (self._users, self._internal):
            fragment = line.first
            while fragment is not None:
                yield fragment
                fragment = fragment.after
