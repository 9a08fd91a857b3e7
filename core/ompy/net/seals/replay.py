"""Which of a sender's numbered datagrams have been here: each is taken once.

The highest number so far, and a bit for each of the `WINDOW` numbers up to it. What is further
behind is not taken: nobody can say any more whether it was here. The bits are a ring that is never
shifted; of what comes into the window, whole bytes are cleared (RFC 6479).

Source: RFC 4303 3.4.3 (IPsec) and RFC 9147 4.5.1 (DTLS), where 64 numbers are the default.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ompy.compiled import U64, ccall, cclass

# seed usnic: a peer may have 4096 packets under way. This is room for each of them
# to be overtaken by all others, and by as many ACKs, or by all of them once more
ROOM: Final = 8192
_BYTES: Final = ROOM // 8
_MASK: Final = _BYTES - 1
WINDOW: Final = ROOM - 7  # RFC 6479: the byte the highest number is in may be almost empty

assert _BYTES & _MASK == 0, "a number's byte is found with a mask"


class Taken(Enum):
    """What a number says about its datagram."""

    NEW = "new"
    REPEATED = "here before"
    LATE = "behind the window"


NEW: Final = Taken.NEW  # a name of a module is found faster than one of an enumeration


@cclass
class ReplayWindow:
    """What has come from one sender.

    Attributes:
        highest: number so far; 0 before the first, as numbers begin at 1.
    """

    _here: bytearray
    highest: U64
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self.highest = 0
        self._here = bytearray(_BYTES)

    @ccall
    def accept_number(self, number: U64) -> Taken:
        """Note that this number is here, and say whether it is for the first time.

        Only for what is proven to be of the sender: anything else would move the window.
        """
        here: bytearray = self._here
        highest: U64 = self.highest
        if number > highest:
            at: U64 = highest >> 3
            end: U64 = number >> 3
            if end - at >= _BYTES:
                here[:] = bytes(_BYTES)
            else:
                while at < end:
                    at += 1
                    here[at & _MASK] = 0
            self.highest = number
        elif highest - number >= WINDOW:
            return Taken.LATE
        bit: U64 = 1 << (number & 7)
        place: U64 = (number >> 3) & _MASK
        if here[place] & bit:
            return Taken.REPEATED
        here[place] |= bit
        return NEW
