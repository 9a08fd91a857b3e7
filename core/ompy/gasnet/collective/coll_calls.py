"""Which collective a rank calls: flags, what all ranks have to say alike, words for both.

Source: reference gasnet.md 14 (Collectives).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, IntFlag
from typing import Final, NamedTuple

from ompy.gasnet.errors import BadArgument
from ompy.gasnet.fill import halves, joined_number
from ompy.gasnet.rank import check_integers


class CollFlag(IntFlag):
    """Bits of reference gasnet.md 14 (Collectives)."""

    IN_NOSYNC = 1 << 0
    IN_MYSYNC = 1 << 1
    IN_ALLSYNC = 1 << 2
    OUT_NOSYNC = 1 << 3
    OUT_MYSYNC = 1 << 4
    OUT_ALLSYNC = 1 << 5
    SINGLE = 1 << 6
    LOCAL = 1 << 7
    AGGREGATE = 1 << 8
    DST_IN_SEGMENT = 1 << 10
    SRC_IN_SEGMENT = 1 << 11


INS: Final = CollFlag.IN_NOSYNC | CollFlag.IN_MYSYNC | CollFlag.IN_ALLSYNC
OUTS: Final = CollFlag.OUT_NOSYNC | CollFlag.OUT_MYSYNC | CollFlag.OUT_ALLSYNC
ADDRESSES: Final = CollFlag.SINGLE | CollFlag.LOCAL
ALL: Final = sum(CollFlag)
ALIKE: Final = INS | OUTS | ADDRESSES  # what ranks have to give alike; the rest are hints
NOWHERE: Final = -1
FLAG_SHIFT: Final = 8  # arbitrary: kinds of calls have room below
WORDS: Final = 8  # of a call


class Kind(Enum):
    """What is called; its place is its number in messages."""

    BROADCAST = "broadcast"
    SCATTER = "scatter"
    GATHER = "gather"
    GATHER_ALL = "gather_all"
    EXCHANGE = "exchange"
    SPLIT = "team_split"
    FREE = "team_free"


KINDS: Final = tuple(Kind)
ROOTED: Final = frozenset({Kind.BROADCAST, Kind.SCATTER, Kind.GATHER})


class Call(NamedTuple):
    """What the members of a team have to say alike.

    Attributes:
        kind: of call.
        flags: of `ALIKE`.
        root: the image it is from or for; 0 where there is none.
        nbytes: of a block.
        dst, src: with SINGLE, offsets into segments; else `NOWHERE`.
    """

    kind: Kind
    flags: int
    root: int
    nbytes: int
    dst: int = NOWHERE
    src: int = NOWHERE

    def words(self) -> list[int]:
        """As arguments of a message."""
        head = KINDS.index(self.kind) | self.flags << FLAG_SHIFT
        sizes = (self.nbytes, self.dst, self.src)
        return [head, self.root, *(word for size in sizes for word in halves(size))]

    def __str__(self) -> str:
        told = [f"image {self.root}"] if self.kind in ROOTED else []
        told.append(f"{self.nbytes} bytes")
        if self.flags & CollFlag.SINGLE:
            told += [f"dst {self.dst}", f"src {self.src}"]
        names = [flag.name or "" for flag in CollFlag if flag & self.flags]
        return f"{self.kind.value}({', '.join(told)}, {' | '.join(names)})"


def call_of(words: Sequence[int]) -> Call:
    """The call that words are of."""
    head, root, *sizes = words
    nbytes, dst, src = (joined_number(*sizes[at : at + 2]) for at in (0, 2, 4))
    kind = KINDS[head & (1 << FLAG_SHIFT) - 1]
    return Call(kind, head >> FLAG_SHIFT, root, nbytes, dst, src)


def check_flags(flags: int) -> CollFlag:
    """See that flags are some.

    Raises:
        BadArgument: unknown ones, or not one of each kind that has no default.
    """
    check_integers(flags)
    if flags & ~ALL or flags < 0:
        raise BadArgument(f"there are no flags {flags & ~ALL:#x} of a collective")
    for group in (INS, OUTS, ADDRESSES):
        chosen = flags & group
        if not chosen or chosen & chosen - 1:
            names = ", ".join(flag.name or "" for flag in CollFlag if flag & group)
            given = CollFlag(chosen).name if chosen else "none"
            raise BadArgument(f"a collective takes one flag of {names}, not {given}")
    return CollFlag(flags)


def check_size(nbytes: int) -> None:
    """Raises: BadArgument: this is no number of bytes."""
    check_integers(nbytes)
    if nbytes < 0:
        raise BadArgument(f"a block has no {nbytes} bytes")


def refuse_aggregate(flags: int) -> None:
    """Raises: BadArgument: a call that waits is to be aggregated with the next."""
    if isinstance(flags, int) and flags & CollFlag.AGGREGATE:
        raise BadArgument("AGGREGATE is for calls with a handle: this one waits")
