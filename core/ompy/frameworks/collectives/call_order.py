"""In which order a rank makes the collective calls of a communicator, and which they are.

All members make the same calls in the same order. So a call has a number, which all count alike,
and a *word*: its number, its kind (`call_kinds.py`) and a detail, the root where there is one. The
API begins every call here, whatever serves it: a component that shares memory shows the word there,
and messages carry it in their tag. A message of another call therefore never arrives in place of
this one's, and who waits too long asks the others for their word (`patience.py`).

    word   number << 32 | kind << 16 | detail, and marks (below) of who takes no part
    tag    -(TAG_CALLS + (number mod 2**17) << 13 | kind << 6 | detail mod 2**6)

Calls that only some members make (`Create_group`, and leaders' in `Create_intercomm`) have no
number. They have a tag of the user's, which stands in its place in their word.

A tag comes again after 131072 calls. Messages with equal tags still match in the order they were
sent, so that this matters only to a request as old as that which is started again.
"""

from __future__ import annotations

from operator import index
from typing import Any, Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.constants import PROC_NULL, ROOT
from ompy.frameworks.collectives.call_kinds import (
    BACKGROUND,
    KIND_BITS,
    NAMES,
    OF_LEADERS,
    OF_SOME,
    ROOTED,
)
from ompy.trace.tag_names import name_tags_by

# places in a word of 64 bits; arbitrary: a number, a kind and a detail have room
NUMBER_SHIFT: Final = 32
NUMBER_MASK: Final = (1 << 32) - 1  # what is left of 64 bits
KIND_SHIFT: Final = 16  # arbitrary, as above
KIND_MASK: Final = 0x7F  # arbitrary: all of `KIND_BITS`
assert (KIND_MASK + 1) >> KIND_BITS == 1
# marks in a word that is shown in memory; arbitrary: bits that no kind has
REFUSED: Final = 1 << 30  # this member takes no part in the call
LEFT: Final = 1 << 31  # nor in any other in this memory
assert REFUSED > KIND_MASK << KIND_SHIFT
DETAIL_MASK: Final = 0xFFFF  # arbitrary: more ranks than that have no root of their own here
# in place of a root between two groups: which has it; arbitrary, and no rank that anybody has
FIRST_GROUP: Final = 0xFFF1
SECOND_GROUP: Final = 0xFFF2
_GROUPS: Final = {FIRST_GROUP: "first", SECOND_GROUP: "second"}
# places in a tag of 32 bits
TAG_DETAIL: Final = 63
TAG_KIND_SHIFT: Final = 6
TAG_NUMBER_SHIFT: Final = TAG_KIND_SHIFT + KIND_BITS
TAG_NUMBER: Final = (1 << 17) - 1  # what is left of 30 bits
# arbitrary: tags of calls are from here downwards, below all other internal ones
TAG_CALLS: Final = 1 << 24
TAG_CALLS_END: Final = TAG_CALLS + (1 << 30)
assert TAG_NUMBER << TAG_NUMBER_SHIFT < 1 << 30, "tags of calls have thirty bits"
# from here down, in turn: tags of `Create_group`, and of the leaders in `Create_intercomm`
TAG_GROUPS: Final = -TAG_CALLS_END - 1
TAG_SPACE: Final = (1 << 31) + TAG_GROUPS >> 1  # of each, so that they stay 32 bit integers
REMEMBERED: Final = 16  # calls; arbitrary: as far as members are apart without noticing
DIGEST: Final = 0x100000001B3  # the prime of FNV-1a hashes with 64 bits
WORD: Final = (1 << 64) - 1
# of this module: numbers in C where it is compiled
_TAG_CALLS: Final = TAG_CALLS
_DETAIL_MASK: Final = DETAIL_MASK
# what a word has of a root that is this rank, or another one of its group
_ROOT_HERE: Final = ROOT & DETAIL_MASK
_ROOT_BESIDE: Final = PROC_NULL & DETAIL_MASK
_REMEMBERED: Final = REMEMBERED
_PAST: Final = bytes(8 * REMEMBERED)  # a word for each
_DIGEST: Final = DIGEST
_WORD: Final = WORD


@cclass
class KeptCall:
    """A call that is started again and again.

    Attributes:
        word: of it.
        starts: how often this rank has started it.
    """

    starts: int
    word: U64
    __slots__ = tuple(__annotations__)

    def __init__(self, word: U64) -> None:
        """Never started; `word` is the call's."""
        self.word = word
        self.starts = 0


@cclass
class CallOrder:
    """The collective calls that this rank has begun in one communicator.

    Attributes:
        number: of the last one; 0 before the first.
        word: of the last one.
        digest: of the kinds of all of them, in their order.
    """

    _given_up: set[int] | None
    _groups_begun: set[int] | None
    _groups_refused: set[int] | None
    _groups_unknown: int
    _kept: dict[int, KeptCall] | None
    _past: memoryview[int]
    digest: U64
    number: U64
    word: U64
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self.number = 0
        self.word = 0
        self.digest = 0
        self._given_up = None
        self._groups_begun = None
        self._groups_refused = None
        self._groups_unknown = 0
        self._kept = None
        self._past = memoryview(bytearray(_PAST))

    @ccall
    def begin(self, kind: U64, detail: U64) -> None:
        """The rank makes the next call.

        Args:
            kind: number of its name.
            detail: the root, below 65536; 0 where there is none.
        """
        number: U64 = self.number + 1 & NUMBER_MASK
        word: U64 = number << NUMBER_SHIFT | kind << KIND_SHIFT | detail
        self.number = number
        self.word = word
        self.digest = (self.digest ^ word) * _DIGEST & _WORD
        raw.put_word(self._past, 8 * (number % _REMEMBERED), word)

    @ccall
    def tag(self) -> int:
        """The tag of the last call's messages; 0 when there was none."""
        word: U64 = self.word
        if not word:
            return 0
        place: int = (word >> NUMBER_SHIFT & TAG_NUMBER) << TAG_NUMBER_SHIFT
        place |= (word >> KIND_SHIFT & KIND_MASK) << TAG_KIND_SHIFT
        return -(_TAG_CALLS + place + (word & TAG_DETAIL))

    def ahead(self) -> CallOrder:
        """One that stands at the same call, to see what the next one would be."""
        made = self._fresh()
        made.number = self.number
        return made

    def _fresh(self) -> CallOrder:
        return CallOrder()

    def keep(self) -> KeptCall:
        """Remember the last call for ever: it will be started again, which is counted there."""
        if self._kept is None:
            self._kept = {}
        made = self._kept[self.number] = KeptCall(self.word)
        return made

    def give_up(self, number: int) -> None:
        """This rank's part in a call has failed; as long as `at` knows it, that is remembered."""
        kept = self._kept or {}
        late = {
            found
            for found in self._given_up or ()
            if self.number - found < REMEMBERED or found in kept
        }
        self._given_up = late | {number}

    def has_given_up(self, number: int) -> bool:
        """Whether this rank's part in a call has failed."""
        return self._given_up is not None and number in self._given_up

    def begin_group(self, word: int) -> None:
        """The rank makes a call of some members, whose word is that of `word_of_group`."""
        self._groups_begun = (self._groups_begun or set()) | {word}
        self._groups_refused = (self._groups_refused or set()) - {word}

    def end_group(self, word: int, *, failed: bool) -> None:
        """The rank's part in such a call has failed, or is done."""
        self._groups_begun = (self._groups_begun or set()) - {word}
        if failed:
            self._groups_refused = (self._groups_refused or set()) | {word}

    def refuse_a_group(self) -> None:
        """The rank takes no part in a call of some members whose tag it does not know."""
        self._groups_unknown += 1

    def has_refused_group(self, word: int) -> bool:
        """Whether the last call with a word has failed, now that a member asks.

        Where the tag of one that failed is not known, it is the first that is asked about.
        """
        if self._groups_refused is not None and word in self._groups_refused:
            return True
        if not self._groups_unknown or word in (self._groups_begun or ()):
            return False
        self._groups_unknown -= 1
        self.end_group(word, failed=True)
        return True

    def at(self, number: int) -> int:
        """The word of a call; 0 when it has not begun, or so long ago that it was forgotten."""
        word = raw.word(self._past, 8 * (number % _REMEMBERED))
        if word >> NUMBER_SHIFT == number:
            return word
        kept = self.kept(number)
        return kept.word if kept is not None else 0

    def kept(self, number: int) -> KeptCall | None:
        """A call that is started again and again; None for any other."""
        return self._kept.get(number) if self._kept is not None else None

    def starts(self) -> list[tuple[int, int]]:
        """Of each such call the number, and how often it was started; the oldest first."""
        return [(number, kept.starts) for number, kept in (self._kept or {}).items()]


@cclass
class GroupsOrder(CallOrder):
    """The calls of a communicator between two groups, whose members name one root differently.

    A member that has the root in its own group says ROOT or PROC_NULL, and not which one it is. So
    a word says in which group it is: members of both that name a rank of the other one are told.
    """

    _other: U64
    _own: U64
    __slots__ = tuple(__annotations__)

    def __init__(self, own: U64) -> None:
        """No call yet; `own` is FIRST_GROUP or SECOND_GROUP, which this rank's is."""
        CallOrder.__init__(self)
        self._own = own
        self._other = FIRST_GROUP + SECOND_GROUP - own

    def _fresh(self) -> CallOrder:
        return GroupsOrder(self._own)

    @ccall
    def begin(self, kind: U64, detail: U64) -> None:
        """The rank makes the next call."""
        if kind in ROOTED:
            here: bool = detail in (_ROOT_HERE, _ROOT_BESIDE)
            CallOrder.begin(self, kind, self._own if here else self._other)
        else:
            CallOrder.begin(self, kind, 0)


@ccall
def mixed(found: U64, number: U64) -> U64:
    """A hash that has one more number in it."""
    return (found ^ number) * _DIGEST & _WORD


@ccall
def detail_of(root: Any) -> int:
    """What a word says of a root, as the user gave it: an integer of any type, or a mistake.

    None is for a call without a root.
    """
    if root is None:
        return 0
    number: int = raw.small(root)
    return number if 0 <= number <= _DETAIL_MASK else _whole(root)


@cfunc
def _whole(root: Any) -> int:
    """An integer that is no plain one, or not small, as far as a word has room; else 0."""
    try:
        return index(root) & DETAIL_MASK
    except TypeError:
        return 0


def tag_of_group(tag: int) -> int:
    """The internal tag of a `Create_group` with a user's tag."""
    return TAG_GROUPS - 2 * (tag % TAG_SPACE)


def tag_of_leaders(tag: int) -> int:
    """That of the leaders' messages in a `Create_intercomm`."""
    return tag_of_group(tag) - 1


def word_of_group(tag: int) -> int:
    """The word of a call that only some members make; it has no number, but a user's tag."""
    return (tag % TAG_SPACE) << NUMBER_SHIFT | OF_SOME << KIND_SHIFT


def word_of_leaders(tag: int) -> int:
    """The word of what the leaders say in a `Create_intercomm`, which has such a tag, too."""
    return (tag % TAG_SPACE) << NUMBER_SHIFT | OF_LEADERS << KIND_SHIFT


def is_of_leaders(word: int) -> bool:
    """Whether a word is of what leaders say."""
    return word >> KIND_SHIFT & KIND_MASK == OF_LEADERS


def tag_of_some(word: int) -> int:
    """The internal tag of the messages of a call without a number."""
    tag = word >> NUMBER_SHIFT
    return tag_of_leaders(tag) if is_of_leaders(word) else tag_of_group(tag)


def number_of(word: int) -> int:
    """Which call a word is of; 0 of one that only some members make."""
    return 0 if word >> KIND_SHIFT & KIND_MASK >= OF_LEADERS else word >> NUMBER_SHIFT


def call_text(word: int) -> str:
    """A call as people know it."""
    kind, detail = word >> KIND_SHIFT & KIND_MASK, word & DETAIL_MASK
    if kind >= OF_LEADERS:
        return "Create_group" if kind == OF_SOME else "Create_intercomm"
    name = NAMES[kind] if kind < len(NAMES) else f"call of kind {kind}"
    if kind not in ROOTED:
        return name
    group = _GROUPS.get(detail)
    return f"{name} with its root in the {group} group" if group else f"{name} with root {detail}"


def name_of(word: int) -> str:
    """The name of a word's call; empty for none."""
    kind = word >> KIND_SHIFT & KIND_MASK
    return NAMES[kind] if kind < len(NAMES) else ""


def is_blocking(word: int) -> bool:
    """Whether who has made a call has done its part when it makes the next one."""
    kind = word >> KIND_SHIFT & KIND_MASK
    return 0 < kind < len(NAMES) and kind not in BACKGROUND


def word_of_tag(tag: int, near: int) -> int:
    """What a tag says of its call's word; 0 for a tag that is no call's.

    Args:
        tag: the tag.
        near: a word of a call of the same communicator, at most 65536 calls before or after it.
    """
    place = -tag - TAG_CALLS
    if not 0 <= place < 1 << 30:
        return 0
    half = TAG_NUMBER // 2 + 1
    behind = (number_of(near) - (place >> TAG_NUMBER_SHIFT) + half & TAG_NUMBER) - half
    number = number_of(near) - behind & NUMBER_MASK
    kind = place >> TAG_KIND_SHIFT & KIND_MASK
    return number << NUMBER_SHIFT | kind << KIND_SHIFT | place & TAG_DETAIL


def is_same_call(of_tag: int, word: int) -> bool:
    """Whether a word that a tag gave, which has less room for the root, may be this one."""
    return of_tag == word & ~DETAIL_MASK | word & TAG_DETAIL


def call_of_tag(tag: int) -> str:
    """The call whose messages have a tag; empty for a tag that is no call's."""
    place = -tag - TAG_CALLS
    if not 0 <= place < 1 << 30:
        return ""
    kind = place >> TAG_KIND_SHIFT & KIND_MASK
    return NAMES[kind] if kind < len(NAMES) else ""


def _call_of_some(tag: int) -> str:
    """The same of a call that only some members make."""
    return ("Create_group", "Create_intercomm")[TAG_GROUPS - tag & 1] if tag <= TAG_GROUPS else ""


name_tags_by(call_of_tag)
name_tags_by(_call_of_some)
