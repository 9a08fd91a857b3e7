"""What a tag says of the call it belongs to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from ompy.frameworks.collectives.call_kinds import NAMES
from ompy.frameworks.collectives.call_order import (
    DETAIL_MASK,
    NUMBER_MASK,
    TAG_CALLS,
    TAG_CALLS_END,
    TAG_DETAIL,
    TAG_NUMBER,
    CallOrder,
    is_same_call,
    number_of,
    word_of_tag,
)

kinds = st.integers(0, len(NAMES) - 1)
details = st.integers(0, DETAIL_MASK)


@given(
    number=st.integers(1, NUMBER_MASK - 1),
    kind=kinds,
    detail=details,
    other=kinds,
    ahead=st.integers(-TAG_NUMBER // 2, TAG_NUMBER // 2),
)
def test_the_word_of_a_tag(number: int, kind: int, detail: int, other: int, ahead: int) -> None:
    """Seen by a member that is some calls ahead or behind, in another call."""
    theirs, mine = CallOrder(), CallOrder()
    theirs.number = number - 1
    mine.number = number + ahead - 1 & NUMBER_MASK
    theirs.begin(kind, detail)
    mine.begin(other, 0)
    found = word_of_tag(theirs.tag(), mine.word)
    assert number_of(found) == number
    assert is_same_call(found, theirs.word)
    assert is_same_call(found, mine.word) == (
        (number, kind, detail & TAG_DETAIL) == (number_of(mine.word), other, 0)
    )


@given(st.integers(1 - TAG_CALLS, 1 << 30) | st.integers(-(1 << 31), -TAG_CALLS_END))
def test_tags_of_no_call(tag: int) -> None:
    assert word_of_tag(tag, 1 << 32) == 0
