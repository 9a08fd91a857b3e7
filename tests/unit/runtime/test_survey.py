"""How ranks stand that were asked once: all are told of, nothing is concluded, it is bounded."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

from ompy.frameworks.needs import COLLECTIVE, RECEIVE
from ompy.runtime.diagnosis.autopsy import SHOWN
from ompy.runtime.diagnosis.rank_report import LINE_SHOWN
from ompy.runtime.diagnosis.survey import Survey, seen_waits, survey_as_json, survey_lines
from ompy.runtime.diagnosis.wait_graph import wait_graph


def at(line: int, text: str = "") -> dict[str, Any]:
    return {"file": "a.py", "line": line, "function": "f", "text": text}


def need(what: str, *ranks: int, number: int = 0) -> dict[str, Any]:
    text = f"message of {ranks}" if what == RECEIVE else f"Barrier, collective call {number} of W"
    made = {"what": what, "comm": 0, "name": "W", "ranks": list(ranks), "every": True, "tag": 8}
    return {**made, "sequence": 0, "size": 0, "number": number, "text": text}


def said(line: int, *needs: dict[str, Any], begun: int = 0, **more: object) -> dict[str, Any]:
    waits = [{"since": 1, "at": at(line), "needs": list(needs) or None}]
    messages = {"begun": {"0": begun}, "sent": {"0": []}, "received": {"0": []}, "unmatched": []}
    return {"live": "", "waits": waits, "tasks": [], **messages, **more}


def where(line: int, waits: str = "", **more: object) -> dict[str, Any]:
    return {"line": f"a.py:{line} in f", "waits": waits, "at": at(line), "asleep": 0, **more}


def test_who_computes_is_waited_for_and_nobody_is_accused() -> None:
    ranks = (0, 1, 2)
    there = {rank: said(5, need(COLLECTIVE, *ranks, number=1), begun=1) for rank in (0, 1)}
    survey = Survey(there, {2: where(9, begun={"0": 0})}, frozenset())
    lines = survey_lines(survey)
    assert lines == [
        "asked once, which proves nothing:",
        "  ranks 0, 1 are at a.py:5 in f",
        "    waiting for Barrier, collective call 1 of W, where rank 2 is missing",
        "  rank 2 is at a.py:9 in f",
        "  look first at rank 2, which is elsewhere than most",
    ]
    told = survey_as_json(survey, "timeout")
    assert (told["class"], told["proven"], told["ranks"]) == ("standing", False, [])
    assert [each["ranks"] for each in told["waits"]] == [[2], [2], []]
    json.dumps(told)


def test_who_waits_for_each_other_is_told_of_first_and_not_accused() -> None:
    unmatched = [[0, 1, 0, 7, 5]]
    there = {0: said(5, need(RECEIVE, 1), unmatched=unmatched), 1: said(6, need(RECEIVE, 0))}
    there[3] = {"live": "another thread of it runs"}
    survey = Survey(there, {2: where(9, "receive from rank 1"), 3: where(7)}, frozenset({4}))
    lines = survey_lines(survey)
    head = "ranks 0, 1 cannot go on, it seems (asked once: no proof); each waits for the next"
    assert lines[0] == f"{head}: 0 -> 1 -> 0"
    assert "    near: 5 bytes from rank 1 are here, but with tag 7" in lines
    assert lines[lines.index("  rank 2 is at a.py:9 in f") + 1].strip() == (
        "not complete: receive from rank 1"
    )
    assert "  rank 3 is at a.py:7 in f" in lines
    assert lines[-1] == "  rank 4 has not said where, in native code perhaps, or stopped"
    assert survey_lines(survey, proven=True)[0].startswith("deadlock: ranks 0, 1 can never go on")


def test_what_is_not_known_of_a_sleep_is_said_so() -> None:
    survey = Survey({0: said(5)}, {}, frozenset())
    assert survey_lines(survey)[-1] == "    waiting for something that is not known"


def test_messages_that_nobody_receives_are_beside_other_calls() -> None:
    there = said(5, need(COLLECTIVE, 0, 1, number=1), begun=1, unmatched=[[0, 1, 0, 7, 5]])
    lines = survey_lines(Survey({0: there}, {1: where(3)}, frozenset()))
    assert "    near: 5 bytes from rank 1 with tag 7 are here, and not received" in lines


def test_it_is_bounded() -> None:
    """Of two hundred ranks at as many lines, each with a thousand messages."""
    size, many = 200, [[0, 1, n, n + 100, 5] for n in range(1000)]
    there = {}
    for rank in range(size):
        there[rank] = said(rank, need(RECEIVE, (rank + 1) % size), unmatched=many)
        there[rank]["waits"][0]["at"] = at(rank, "x" * LINE_SHOWN)
    survey = Survey(there, {}, frozenset())
    lines = survey_lines(survey)
    assert len(lines) <= 2 + 8 * SHOWN
    assert sum(map(len, lines)) < 64 * 1024
    assert "and ranks 16-199, at 184 more places" in lines[-1]
    picture = wait_graph(seen_waits(survey))
    assert len(picture) < 256 * 1024
    ET.fromstring(picture)
    assert survey_lines(Survey({}, {}, frozenset())) == ["no rank is in MPI"]


def test_the_picture_says_what_an_arrow_is_and_what_each_waits_for() -> None:
    there = {rank: said(rank + 5, need(RECEIVE, 1 - rank)) for rank in (0, 1)}
    picture = wait_graph(seen_waits(Survey(there, {}, frozenset())))
    texts = [element.text for element in ET.fromstring(picture).iter() if element.text]
    assert "An arrow leads to a rank that is waited for. Red: a circle of these." in texts
    for rank in (0, 1):
        (line,) = [text for text in texts if text.startswith(f"rank {rank}: ")]
        assert texts[texts.index(line) + 1] == f"waiting for message of ({1 - rank},)"
