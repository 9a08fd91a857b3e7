"""What `tools/bench interpreted_calls` counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tools.bench.interpreted_calls import CALLS, entered, line_of

HERE = f"{Path(__file__).parent}/"


def twice(value: int) -> int:
    return 2 * value


def step(count: int) -> None:
    for each in range(count):
        twice(each)


def test_functions_below_a_folder_are_counted() -> None:
    found = entered(step, HERE)
    assert found == {f"{Path(__file__).name}:step": 1, f"{Path(__file__).name}:twice": CALLS}
    assert not entered(step, "/somewhere/else/")


def test_a_line_has_them_by_call() -> None:
    line = line_of("Send", Counter({"a.py:one": 2 * CALLS, "b.py:two": CALLS}), 1)
    assert line.split() == ["3.0", "Send", "a.py:one", "2.0,", "b.py:two", "1.0"]
    assert line_of("Send", Counter({"a.py:one": CALLS}), 2).split()[:2] == ["0.5", "Send"]
