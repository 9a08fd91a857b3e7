"""What ranks of a world began beside what they began before; and both in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ompy.runtime.exploration.call_journal import (
    RECEIVE,
    SEND,
    TEST,
    WAIT,
    Call,
    CallJournal,
    ComparedCalls,
    from_json,
    to_json,
)
from ompy.runtime.exploration.events import Diverged
from ompy.runtime.exploration.schedule_file import read_schedule, text_of

THEN = [
    [Call(SEND, 1, 3, "a.py:4"), Call(WAIT, -1, -1, "a.py:5")],
    [Call(RECEIVE, -1, -1, "a.py:7")],
]


def test_a_journal_is_the_same_after_a_file() -> None:
    journal = CallJournal(2)
    for rank, calls in enumerate(THEN):
        for call in calls:
            journal.add_call(rank, *call)
    assert journal.calls == THEN
    assert from_json(json.loads(json.dumps(to_json(journal.calls)))) == THEN


def test_the_first_call_that_differs_is_named() -> None:
    compared = ComparedCalls(THEN, lines=False)
    compared.add_call(0, SEND, 1, 3, "a.py:6")
    compared.add_call(1, RECEIVE, -1, -1, "a.py:9")
    compared.add_call(1, TEST, -1, -1, "a.py:10")  # so far it had not come
    compared.end_rank(1)
    with pytest.raises(Diverged, match="rank 0 .* at its call 2: it has come to its end"):
        compared.end_rank(0)
    with pytest.raises(Diverged) as told:
        compared.add_call(0, SEND, 1, 3, "a.py:6")
    assert "now:             a.py:6: a message to rank 1 with tag 3" in str(told.value)
    assert "in the schedule: a.py:5: a wait for one of several" in str(told.value)
    with pytest.raises(Diverged, match="the lines differ"):
        ComparedCalls(THEN, lines=True).add_call(0, SEND, 1, 3, "a.py:6")


def test_calls_are_of_the_choices_beside_them(tmp_path: Path) -> None:
    path = tmp_path / "schedule.json"
    choices = [((0, 1), ("from", 1, 1), "a.py:4", "said")]
    text = text_of({}, 2, 1, choices, buffers=True, calls=THEN)
    path.write_text(text)
    assert read_schedule(str(path)).calls == THEN
    path.write_text(json.dumps({**json.loads(text), "choices": []}))
    assert read_schedule(str(path)).calls is None
    for odd in ({}, {**json.loads(text)["calls"], "lines": []}, 7):
        path.write_text(json.dumps({**json.loads(text), "calls": odd}))
        with pytest.raises(ValueError, match="no schedule"):
            read_schedule(str(path))
