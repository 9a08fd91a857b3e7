"""What a launcher says of its job, as lines."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.cli.watching import live_text
from ompy.cli.watching.live_text import MATRIX_MAX


def row(rank: int, **more: object) -> dict[str, Any]:
    found: dict[str, Any] = {"rank": rank, "host": "h", "state": "initialized", "told": True}
    return {**found, "line": "a.py:3", "waits": "", "for_s": 0.0, "queues": {}, **more}


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (59.94, "59.9 s"), (61, "1:01"), (3723, "1:02:03")]
)
def test_spans(seconds: float, text: str) -> None:
    assert live_text.span_text(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (99_400, "99.4k"),
        (123_456, "123k"),
        (10**15, "1000T"),
    ],
)
def test_counts(count: int, text: str) -> None:
    assert live_text.short_count(count) == text


def test_a_rank() -> None:
    queues = {"messages_sent": 5, "messages_received": 4, "unexpected_msgq_length": 1}
    waiting = row(3, line="/long/way/a.py:3", waits="a receive", for_s=2.0, queues=queues)
    assert live_text.rank_row(waiting) == [
        *("3", "h", "waits", "2.0 s", "5", "4", "1", "-"),
        "a.py:3, waiting for a receive",
    ]
    assert live_text.rank_row(row(0))[2:4] == ["runs", "-"]
    silent = live_text.rank_row({"rank": 1, "host": "h", "state": "initialized", "told": False})
    assert silent[2] == "silent"
    assert "native code" in silent[-1]
    ended = {"rank": 1, "host": "h", "state": "ended", "told": False}
    assert live_text.rank_row(ended)[2] == "ended"


def test_a_program_writes_nothing_to_the_terminal_of_who_watches() -> None:
    assert "\x1b" not in "".join(live_text.rank_row(row(0, line="\x1b[2J", waits="\x07")))


def test_who_has_sent_to_whom() -> None:
    ranks = [row(0, messages=[[1, 1500]], bytes=[]), row(1, messages=[[0, 2]], bytes=[])]
    assert live_text.matrix_rows(ranks, "messages") == [
        ["from \\ to", "0", "1"],
        ["0", ".", "1.5k"],
        ["1", "2", "."],
    ]
    assert live_text.matrix_rows(ranks, "bytes") == []
    many = [row(rank, messages=[[0, 1]]) for rank in range(MATRIX_MAX + 5)]
    assert len(live_text.matrix_rows(many, "messages")) == MATRIX_MAX + 1


def test_rails() -> None:
    answer = {
        "rails": [[0, 1, "tcp over eth0", "eth0", "10.0.0.1", "10.0.0.2", 2048, "sound"]],
        "broken": [{"rank": 1, "peer": 0, "cause": "cut"}],
    }
    assert live_text.rail_rows(answer) == [
        ["rail", "carried", "phase"],
        ["0 to 1, tcp over eth0", "2.0k", "sound"],
        ["1 to 0", "", "broken: cut"],
    ]
    assert live_text.rail_rows({"rails": [], "broken": []}) == []


def test_stacks() -> None:
    answer = {
        "stacks": [{"rank": 0, "threads": [["MainThread", [["a.py", 3, "f"]]]]}],
        "silent": [1, 2],
    }
    assert live_text.stack_lines(answer) == [
        "rank 0, MainThread",
        "  a.py:3 in f",
        "ranks 1, 2: no answer, in native code perhaps",
    ]


def test_all_of_it() -> None:
    said: dict[str, Any] = {"job": "ab", "program": "python a.py", "hosts": ["h"], "ranks": 1}
    said |= {"age_s": 2.0, "phase": "running", "states": {"initialized": 1}}
    ranks = [row(0, messages=[[0, 1]])]
    answer = {"ranks": ranks, "rails": [], "broken": [], "findings": [["info", "one\ntwo"]]}
    text = live_text.whole_text(said, answer)
    head = "job ab: python a.py, 1 host, running for 2.0 s; ranks: 1 initialized"
    assert text[0] == head
    assert "messages sent" in text
    assert text[-2:] == ["one", "two"]
