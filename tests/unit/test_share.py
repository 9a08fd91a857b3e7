"""What CI leaves out of a suite, and what it may not."""

from __future__ import annotations

import pytest

from tests.support.share import TURNS, left_out


class Item:
    """As much of pytest's as the choice looks at."""

    def __init__(self, nodeid: str, *marks: str) -> None:
        self.nodeid, self.marks = nodeid, marks

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None


REAL = [Item(f"tests/proc/test_a.py::test_{number}", "proc") for number in range(100)]
FLOOR = Item("tests/interop/test_suite.py::test_floor", "proc")
QUICK = Item("tests/unit/test_b.py::test_it")
SLOW = Item("tests/sim/test_c.py::test_it", "nightly")


def names(found: set[pytest.Item]) -> set[str]:
    return {item.nodeid for item in found}


def left(monkeypatch: pytest.MonkeyPatch, **environment: str) -> set[str]:
    for name in ("OMPY_SHARE", "OMPY_TURN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return names(left_out([*REAL, FLOOR, QUICK, SLOW]))  # type: ignore[list-item]


def test_as_many_turns_run_every_test_of_real_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [
        left(monkeypatch, OMPY_SHARE="0.2", OMPY_TURN=str(turn)) - {SLOW.nodeid}
        for turn in range(7, 7 + TURNS)
    ]
    ran = [names(set(REAL)) - found for found in turns]  # type: ignore[arg-type]
    assert set.union(*ran) == names(set(REAL))  # type: ignore[arg-type]
    assert sum(map(len, ran)) == len(REAL)
    assert all(20 < len(each) < 47 for each in ran)
    assert not set.union(*turns) & {FLOOR.nodeid, QUICK.nodeid}


def test_without_a_turn_all_of_them_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert left(monkeypatch, OMPY_SHARE="0.2") == {SLOW.nodeid}


def test_nights_leave_out_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert left(monkeypatch, OMPY_TURN="1") == set()


def test_a_share_keeps_one_case_of_each_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMPY_TURN", raising=False)
    monkeypatch.setenv("OMPY_SHARE", "0.2")
    cases = [Item(f"tests/sim/test_d.py::test_it[{number}]") for number in range(10)]
    single = Item("tests/sim/test_d.py::test_other[1]")
    found = left_out([*cases, single])  # type: ignore[list-item]
    assert len(found) == 8
    assert single not in found
