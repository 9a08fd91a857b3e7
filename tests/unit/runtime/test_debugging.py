"""Command lines of Python with a debugger in them."""

from __future__ import annotations

import json
import os

import pytest
from ompy.runtime.connections.control import Kind
from ompy.runtime.diagnosis.debugging import NotDebuggable, debugged_words, debugger_words
from ompy.runtime.diagnosis.stacks import stack_lines
from ompy.runtime.machines.diagnosis.inquest import INTERRUPTED, TIMEOUT, Inquests
from ompy.runtime.machines.events import Event, Seen


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("python a.py -c x", "python rank_pdb.py a.py -c x"),
        (
            "/usr/bin/python3.11 -u -W error a.py",
            "/usr/bin/python3.11 -u -W error rank_pdb.py a.py",
        ),
        ("python -m mod -x", "python rank_pdb.py -m mod -x"),
        ("python -Xdev -X faulthandler a.py", "python -Xdev -X faulthandler rank_pdb.py a.py"),
    ],
)
def test_pdb(line: str, expected: str) -> None:
    made = debugged_words(line.split(), debugger_words("pdb", 0))
    ours = next(word for word in made if word.endswith("/rank_pdb.py"))
    assert os.path.exists(ours)
    assert " ".join(made).replace(ours, "rank_pdb.py") == expected


def test_debugpy_listens_on_this_host_alone() -> None:
    made = debugged_words(["python", "-c", "1"], debugger_words("debugpy", 7))
    assert " ".join(made) == (
        "python -X frozen_modules=off -m debugpy --listen 127.0.0.1:7 --wait-for-client -c 1"
    )


@pytest.mark.parametrize("line", ["./a.out", "python", "python -u", "python - x", "python -c 1"])
def test_what_cannot_be_debugged(line: str) -> None:
    with pytest.raises(NotDebuggable):
        debugged_words(line.split(), debugger_words("pdb", 0))


def test_equal_stacks_are_told_of_once() -> None:
    inner, outer = ["a.py", 7, "inner"], ["a.py", 9, "<module>"]
    fork = ["/x/ompy/runtime/ranks/forked.py", 80, "run"]
    where = {
        2: {"threads": [["MainThread", [inner, outer]]]},
        0: {"threads": [["MainThread", [inner, outer, fork, ["run.py", 1, "main"]]]]},
        1: {"missing": "it changed"},
    }
    assert stack_lines(where) == [
        "stacks of ranks 0, 2, the innermost call last:",
        "  thread MainThread",
        "    a.py:9 in <module>",
        "    a.py:7 in inner",
        "stacks of rank 1, the innermost call last:",
        "  it has not said",
    ]


@pytest.mark.parametrize(
    ("why", "wanted", "shown"),
    [(TIMEOUT, True, 1), (TIMEOUT, False, 0), (INTERRUPTED, True, 0)],
)
def test_stacks_are_told_at_a_timeout_if_they_are_wanted(
    why: str, wanted: bool, shown: int
) -> None:
    made = Inquests(lambda *_: (), stacks=wanted)
    made.begin_inquest(why, frozenset({0}), 0.0)
    said = {"at": {}, "threads": [["MainThread", [["a.py", 7, "inner"]]]]}
    header = {"rank": 0, "line": "", "waits": ""}
    made.heard(Event(Seen.BELOW, 0, Kind.WHERE, header, json.dumps(said).encode()))
    over = made.take_inquest(None)
    assert over is not None
    text = "".join(str(act) for act in made.tell_users(over))
    assert text.count("stacks of rank 0, the innermost call last") == shown
