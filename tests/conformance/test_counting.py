"""What the kit says of the how-manieth thing counts from 1 on, as its readers do."""

from __future__ import annotations

import pytest
from ompy.conformance.btl.determinism import _compare
from ompy.conformance.btl.driver import check_order


def test_an_arrival_out_of_order() -> None:
    check_order("abcabc", "abab", "here")
    with pytest.raises(AssertionError) as found:
        check_order("abcd", "adb", "from rank 0 at 2")
    assert str(found.value).splitlines()[0] == (
        "arrival 3 from rank 0 at 2 is out of order: it was sent as number 2, "
        "and number 4 came before it"
    )


@pytest.mark.parametrize(
    ("first", "second", "where"),
    [("xbc", "abc", "line 1 of 3"), ("abc", "abx", "line 3 of 3"), ("ab", "abc", "line 3 of 3")],
)
def test_the_line_from_which_on_two_runs_differ(first: str, second: str, where: str) -> None:
    with pytest.raises(AssertionError, match=f"seed 7: the trace differs from {where} on"):
        _compare(list(first), list(second), 7, "the trace")
