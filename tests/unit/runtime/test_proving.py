"""When the launcher asks ranks how they stand, and when it believes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ompy.runtime.machines.diagnosis.proving import ANSWERS, OTHERS, Doubt, Prover
from ompy.runtime.machines.launcher.assembly import JoinedJobMachine
from ompy.runtime.machines.launcher.job import JobMachine
from ompy.runtime.machines.launcher.open_job import OpenJobMachine

from tests.unit.runtime.test_deadlock import LIVE, need, receive, said

SETTLE, AGAIN = 0.05, 0.5  # of 250 ms
LOST = {0: said(receive(1)), 1: said(receive(0))}


def body(what: Any) -> bytes:
    return json.dumps(what).encode()


def suspicious() -> Prover:
    """Both ranks have said that they wait for each other."""
    prover = Prover(0.25)
    for rank, each in LOST.items():
        assert not prover.told(rank, 0, body(each), 0.0)
    assert prover.doubt is Doubt.SUSPECT
    assert prover.due == SETTLE
    assert prover.turn(SETTLE) == frozenset(), "others may say the same"
    assert prover.due == 2 * SETTLE
    return prover


def answer(prover: Prover, now: float, **other: Any) -> frozenset[int]:
    """Both answer as before, or otherwise."""
    asked: frozenset[int] = frozenset()
    for rank, before in LOST.items():
        each = other.get(f"rank{rank}", before)
        asked = prover.told(rank, prover.question, body(each), now)
    return asked


def test_two_equal_answers_are_a_proof():
    prover = suspicious()
    assert prover.turn(2 * SETTLE) == {0, 1}
    assert prover.doubt is Doubt.FIRST
    assert answer(prover, 0.1) == {0, 1}
    assert prover.doubt is Doubt.SECOND
    assert prover.proof is None
    assert answer(prover, 0.2) == frozenset()
    assert prover.proof is not None
    assert prover.proof.found.ranks == {0, 1}
    assert prover.proof.said == LOST


def test_a_rank_that_has_gone_on_meanwhile_is_not_accused():
    prover = suspicious()
    prover.turn(2 * SETTLE)
    answer(prover, 0.1)
    moved = {**LOST[1], "received": {"0": [[0, 9]]}}
    assert answer(prover, 0.2, rank1=moved) == frozenset()
    assert prover.proof is None
    assert prover.doubt is Doubt.SUSPECT


def test_what_was_said_unasked_is_no_proof():
    """It may be old: the rank computes now."""
    prover = suspicious()
    prover.turn(2 * SETTLE)
    answer(prover, 0.1, rank1=LIVE)
    assert prover.proof is None
    assert prover.turn(0.1 + AGAIN) == frozenset()
    assert prover.doubt is Doubt.QUIET


def test_who_does_not_answer_is_not_asked_again_until_it_speaks():
    prover = suspicious()
    prover.turn(2 * SETTLE)
    first = prover.question
    prover.told(0, first, body(LOST[0]), 0.1)
    assert prover.turn(2 * SETTLE + ANSWERS) == frozenset()
    assert prover.turn(2 * SETTLE + ANSWERS + AGAIN) == frozenset()
    assert prover.doubt is Doubt.QUIET
    prover.told(1, first, body(LOST[1]), 9.0)  # it was stopped, and goes on
    assert prover.turn(9.0 + SETTLE) == {0, 1}
    answer(prover, 9.1)
    answer(prover, 9.2)
    assert prover.proof is not None


def test_answers_to_older_questions_prove_nothing():
    prover = suspicious()
    prover.turn(2 * SETTLE)
    old = prover.question
    answer(prover, 0.1)
    for rank, each in LOST.items():
        prover.told(rank, old, body(each), 0.2)
    assert prover.proof is None


def test_a_rank_that_ends_is_forgotten():
    prover = suspicious()
    prover.gone(1)
    assert prover.turn(2 * SETTLE) == frozenset()
    assert prover.doubt is Doubt.QUIET


def test_who_waits_for_one_that_computes_is_asked_nothing():
    prover = Prover(0.25)
    prover.told(0, 0, body(LOST[0]), 0.0)
    assert prover.turn(2 * SETTLE) == frozenset()
    assert prover.due is None


def test_who_comes_late_to_a_call_is_waited_for_and_named():
    prover = Prover(0.25, lambda: frozenset({0, 1, 2}))
    for rank, each in LOST.items():
        prover.told(rank, 0, body(each), 0.0)
    while prover.due is not None and prover.due < 0.5:
        assert prover.turn(prover.due) == frozenset()
    prover.told(2, 0, body(said(receive(0))), 0.5)
    for _ in range(2):
        asked = prover.turn(prover.due)
    assert asked == {0, 1, 2}


def test_ranks_that_run_on_are_waited_for_no_longer_than_that():
    prover = Prover(0.25, lambda: frozenset({0, 1, 2}))
    for rank, each in LOST.items():
        prover.told(rank, 0, body(each), 0.0)
    now = 0.0
    while not prover.turn(now):
        now += 0.01
    assert 0 < now - OTHERS * 0.25 < 3 * SETTLE


@pytest.mark.parametrize("everybody", [{0, 1}, {0, 1, 2}, None])
def test_who_waits_at_a_port_is_accused_only_where_all_who_could_come_are_asked(
    everybody: set[int] | None,
) -> None:
    prover = Prover(0.25, everybody=lambda: everybody)
    stand = {0: said(need("port", [], number=0)), 1: said(receive(0))}
    for rank, each in stand.items():
        prover.told(rank, 0, body(each), 0.0)
    asked = [prover.turn(SETTLE), prover.turn(2 * SETTLE)][-1]
    for now in (0.2, 0.3):
        for rank in asked:
            prover.told(rank, prover.question, body(stand[rank]), now)
    assert (prover.proof is not None) is (everybody == {0, 1})


def test_where_others_may_join_nobody_knows_who_could_come() -> None:
    assert OpenJobMachine.may_meet is not JobMachine.may_meet
    assert JoinedJobMachine.may_meet is not JobMachine.may_meet
    assert JoinedJobMachine("launcher", 2).may_meet() is None


WINDOW = 5
SHARES = said(need("lock", [1, 2, 3], comm=WINDOW, target=3, alone=False))
HOLDS = said(receive(0), held=[[WINDOW, 3, False, ""]])
WANTS = said(need("lock", [0, 1, 3], comm=WINDOW, target=3, alone=True))
QUEUE = [[WINDOW, [[2, True], [0, False]]]]
OWNER = {"live": "it is in no call that waits", "queued": QUEUE}


def queueing() -> Prover:
    """Rank 1 shares the lock of rank 3, which runs; 2 wants it alone, and 0 to share it."""
    prover = Prover(0.25)
    for rank, each in enumerate((SHARES, HOLDS, WANTS)):
        prover.told(rank, 0, body(each), 0.0)
    prover.turn(SETTLE)
    assert prover.turn(2 * SETTLE) == {0, 1, 2, 3}
    return prover


def test_the_owner_of_a_lock_is_asked_who_is_first():
    prover = queueing()
    for now in (0.2, 0.3):
        for rank, each in enumerate((SHARES, HOLDS, WANTS, OWNER)):
            prover.told(rank, prover.question, body(each), now)
    assert prover.proof is not None
    assert prover.proof.found.ranks == {0, 1, 2}


def test_without_the_owners_word_nothing_is_proven():
    """It computes, and may not have taken the requests in yet."""
    prover = queueing()
    for rank, each in enumerate((SHARES, HOLDS, WANTS)):
        prover.told(rank, prover.question, body(each), 0.2)
    assert prover.doubt is Doubt.FIRST
    assert prover.turn(2 * SETTLE + ANSWERS) == frozenset()
    assert prover.doubt is Doubt.SUSPECT
    assert prover.turn(2 * SETTLE + ANSWERS + AGAIN) == {0, 1, 2, 3}, "it may poll by then"


def test_an_owner_that_says_nothing_hides_no_other_deadlock():
    prover = Prover(0.25)
    crossed = [
        said(
            need("lock", [1 - rank, 3], comm=WINDOW, target=3, alone=True),
            held=[[WINDOW, 3, True, ""]],
        )
        for rank in range(2)
    ]
    for rank, each in enumerate(crossed):
        prover.told(rank, 0, body(each), 0.0)
    prover.turn(SETTLE)
    now = 2 * SETTLE
    assert prover.turn(now) == {0, 1, 3}
    for _ in range(2):
        for rank, each in enumerate(crossed):
            prover.told(rank, prover.question, body(each), now)
        now += ANSWERS
        prover.turn(now)
    assert prover.proof is not None
    assert prover.proof.found.ranks == {0, 1}
