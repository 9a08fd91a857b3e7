"""Whether the next large message to a peer is lent, or lies in a block: what took less lately.

Both sides know a part of what a message takes: the sender how long it packs into a block, the
receiver how long it takes the message in, which it leaves in the block. Where a sender does not
change its memory between messages, the receiver still has it in its cache, and reads it there in a
fraction of what two copies take. Where it does, the receiver fetches each line from the sender's
cache, and, what neither side can measure, the sender fetches it back when it changes it again.
So to lend has to be better by far: README.md, "Lent messages", has what was measured.
"""

from __future__ import annotations

from typing import Final

from ompy.compiled import Shown, ccall, cclass, cfunc

# messages before the other way is tried again; arbitrary: doubled each time nothing changes
SOONEST: Final = 4
LATEST: Final = 128
SHARE: Final = 4  # of a new time in what is expected: a quarter; arbitrary
MOST: Final = 4  # times as long as expected, or as short, counts no more; arbitrary: preempted
# measured: ns that the receiver of a small message takes that is lent, most of it in the kernel
LENT_AT_LEAST: Final = 700
# measured: to lend is worth it where it takes two thirds at most
BETTER: Final = 2
OF: Final = 3
_SCALE: Final = 1024  # times are per so many bytes; arbitrary


@cclass
class LendingChoice:
    """The two ways to one peer.

    Attributes:
        lends: the better one is to lend.
    """

    _in_block: Shown[int]
    _interval: int
    _left: int
    _lent: Shown[int]
    _tried: int
    lends: bool
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self._in_block = self._lent = 0  # not known
        self._interval = self._left = SOONEST
        self._tried = 0
        self.lends = True

    @ccall
    def next(self) -> bool:
        """Whether to lend the next message."""
        if self._left:
            self._left -= 1
            return self.lends
        self._tried += 1
        if self.lends or self._tried == 2:  # the first one that is lent finds nothing cached
            self._tried = 0
            self._left = self._interval
            if self._interval < LATEST:
                self._interval *= 2
        return not self.lends

    @ccall
    def took(self, lent: bool, time: int, size: int) -> None:
        """What a message has taken.

        Args:
            lent: it was lent.
            time: nanoseconds.
            size: bytes.
        """
        if lent and self._tried:
            return  # of two that are tried it is the first
        tried: bool = lent != self.lends
        if lent:
            self._lent = _expected(self._lent, (time - LENT_AT_LEAST) * _SCALE // size, tried)
        else:
            self._in_block = _expected(self._in_block, time * _SCALE // size, tried)
        if not self._in_block or not self._lent:
            return
        better: bool = OF * self._lent <= BETTER * self._in_block
        if better != self.lends:
            self.lends = better
            self._tried = 0
            self._interval = self._left = SOONEST


@cfunc
def _expected(before: int, now: int, tried: bool) -> int:
    """What is expected after one more time, per `_SCALE` bytes.

    Args:
        before: what was; 0 for nothing.
        now: the time.
        tried: of the way that is not in use: there are few, so a shorter time counts at once.
    """
    now = max(1, now)
    if not before or (tried and now < before):
        return now
    now = min(max(now, before // MOST), before * MOST)
    return max(1, before + (now - before) // SHARE)
