"""Whether ranks can ever go on that wait in windows, by what they say of themselves."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from ompy.runtime.diagnosis.autopsy import as_json, autopsy_lines
from ompy.runtime.diagnosis.survey import Survey, seen_waits
from ompy.runtime.machines.diagnosis.deadlock import Said, find_deadlock

from tests.unit.runtime.test_deadlock import LIVE, found, need, receive, said

WINDOW = 5  # context id


def lock(target: int, *others: int, alone: bool = True) -> dict[str, Any]:
    text = f"the lock of rank {target} of window 5"
    return need("lock", list(others), comm=WINDOW, target=target, alone=alone, text=text)


def held(target: int, *, alone: bool = True, at: str = "") -> list[Any]:
    return [WINDOW, target, alone, at]


def holder(wants: dict[str, Any], *locks: list[Any], **more: Any) -> Said:
    return said(wants, held=list(locks), **more)


def test_each_holds_what_the_other_wants():
    first = holder(lock(1, 1), held(0))
    second = holder(lock(0, 0), held(1))
    assert found(first, second) == [0, 1]


def test_who_holds_it_waits_for_a_message_of_who_wants_it():
    assert found(said(lock(2, 1, 2)), holder(receive(0), held(2)), LIVE) == [0, 1]


@pytest.mark.parametrize("other", [LIVE, said(None, held=[held(1)])])
def test_who_may_go_on_gives_its_lock_back(other: Said):
    assert found(holder(lock(1, 1), held(0)), other) == []


def test_where_nobody_says_that_he_has_it_nothing_is_proven():
    assert found(said(lock(1, 1)), said(receive(0))) == []
    assert found(said(lock(1, 1)), holder(receive(0), held(0))) == [], "another's lock"
    other_window = [WINDOW + 1, 1, True, ""]
    assert found(said(lock(1, 1)), holder(receive(0), other_window)) == []


@pytest.mark.parametrize(("wants", "has"), list(product([True, False], repeat=2)))
def test_shared_locks_do_not_exclude_each_other(wants: bool, has: bool):
    ranks = said(lock(1, 1, alone=wants)), holder(receive(0), held(1, alone=has))
    assert found(*ranks) == ([0, 1] if wants or has else [])


def test_one_of_several_who_share_it_is_enough():
    """All have to give it back."""
    sharing = holder(receive(0), held(1, alone=False))
    assert found(said(lock(1, 1, 2)), sharing, LIVE) == [0, 1]


def test_a_lock_that_is_free_after_a_while():
    """Rank 1 has it and waits for rank 2, which runs."""
    assert found(said(lock(1, 1, 2)), holder(receive(2), held(1)), LIVE) == []


def test_who_shares_a_lock_still_waits_for_who_has_asked_before_to_have_it_alone():
    """Rank 1 shares the lock of rank 3, rank 2 wants it alone, and then rank 0 to share it."""
    shares = lock(3, 1, 2, 3, alone=False)
    has = holder(receive(0), held(3, alone=False))
    alone = said(lock(3, 0, 1, 3))
    owner = said(receive(0), queued=[[WINDOW, [[2, True], [0, False]]]])
    assert found(said(shares), has, alone, owner) == [0, 1, 2, 3]
    assert found(said(shares), has, alone, LIVE) == []
    first = said(receive(0), queued=[[WINDOW, [[0, False], [2, True]]]])
    assert found(said(shares), has, alone, first) == []
    under_way = said(receive(0), queued=[[WINDOW, [[2, True]]]])
    assert found(said(shares), has, alone, under_way) == []
    ranks = dict(enumerate([said(shares), has, alone, owner]))
    lost = find_deadlock(ranks)
    assert lost is not None
    says = "the lock of rank 3 of window 5, which rank 2 asked for before"
    assert f"    waiting for {says}" in autopsy_lines(lost, ranks)


def test_an_owner_that_runs_says_who_has_asked_before():
    shares, has = lock(3, 1, 2, 3, alone=False), holder(receive(0), held(3, alone=False))
    alone = said(lock(3, 0, 1, 3))
    owner = {"live": "it runs", "queued": [[WINDOW, [[2, True], [0, False]]]]}
    assert found(said(shares), has, alone, owner) == [0, 1, 2]
    first = {"live": "it runs", "queued": [[WINDOW, [[0, False], [2, True]]]]}
    assert found(said(shares), has, alone, first) == []
    ranks = dict(enumerate([said(shares), has, alone]))
    assert find_deadlock(ranks) is None, "nothing is known of the queue"
    suspected = find_deadlock(ranks, suspect=True)
    assert suspected is not None
    assert suspected.ranks == {0, 1, 2}


@pytest.mark.parametrize("what", ["post", "complete"])
def test_post_and_complete_are_told_by_who_calls_them(what: str):
    wants = need(what, [1], comm=WINDOW)
    traffic = {"sent": {"5": [[0, 3]], "0": []}, "received": {"5": [[0, 3]], "0": []}}
    told = {"sent": {"5": [[1, 0]], "0": []}, "received": {"5": [[1, 3]], "0": []}}
    assert found(said(wants, **told), said(receive(0), **traffic)) == [0, 1]
    assert found(said(wants, **told), LIVE) == []
    under_way = {**told, "received": {"5": [[1, 2]], "0": []}}
    assert found(said(wants, **under_way), said(receive(0), **traffic)) == []


def test_the_story_says_who_has_the_lock_and_since_where():
    first = holder(lock(1, 1, 2), held(0, at="app.py:4"))
    second = holder(lock(0, 0, 2), held(1, at="app.py:9"))
    ranks = {0: first, 1: second, 2: holder(lock(1, 0, 1), held(2))}
    lost = find_deadlock(ranks)
    assert lost is not None
    assert lost.ranks == {0, 1, 2}
    assert lost.cycle == (0, 1)
    lines = autopsy_lines(lost, ranks)
    says = "waiting for the lock of rank 1 of window 5, which rank 1 holds since app.py:9"
    assert f"    {says}" in lines
    waits = as_json(lost, ranks)["waits"]
    assert waits[0]["ranks"] == [1]
    assert waits[0]["for"] == ["the lock of rank 1 of window 5"]
    assert waits[0]["held"] == [{"rank": 1, "since": "app.py:9"}]


def test_a_survey_names_the_holder_alone():
    ranks = {0: said(lock(1, 1, 2)), 1: holder(receive(2), held(1)), 2: LIVE}
    seen = seen_waits(Survey(ranks, {2: {}}, frozenset()))
    assert {waits.rank: waits.ranks for waits in seen.waits}[0] == (1,)


def accept(**more: Any) -> dict[str, Any]:
    return need("port", [], text="a Connect to port ompy:1", number=0, **more)


def at_port(*ranks: Said, everybody: set[int] | None) -> list[int]:
    lost = find_deadlock(dict(enumerate(ranks)), everybody=everybody)
    return sorted(lost.ranks) if lost else []


def test_who_waits_at_a_port_is_lost_only_if_nobody_is_left_who_could_come():
    waits, other = said(accept()), said(receive(0))
    assert at_port(waits, other, everybody={0, 1}) == [0, 1]
    assert at_port(waits, other, everybody={0, 1, 2}) == [], "one that nothing is known of"
    assert at_port(waits, LIVE, everybody={0, 1}) == []
    assert at_port(waits, other, everybody=None) == [], "guests may join"
    assert at_port(waits, waits, everybody={0, 1}) == [0, 1]


def test_those_whose_leader_waits_at_a_port_are_lost_with_it():
    leader = said(accept(comm=0) | {"number": 1}, begun={"0": 1})
    member = said(need("collective", [0]), begun={"0": 1})
    assert at_port(leader, member, everybody={0, 1}) == [0, 1]
    assert at_port(leader, member, everybody={0, 1, 2}) == []
