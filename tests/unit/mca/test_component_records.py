from __future__ import annotations

import itertools

import pytest
from ompy.mca.plugins.component_records import SETTLED, TRANSITIONS, ComponentRecord, State

ALLOWED = """
found > blocked broken incompatible loaded shadowed
blocked >
broken >
incompatible >
shadowed >
loaded > broken not-available open-failed opened
opened > not-available not-selected open-failed selected
open-failed >
not-available > not-available open-failed selected
selected > open-failed selected
not-selected > not-available not-selected open-failed selected
"""


def record(state: State = State.FOUND) -> ComponentRecord:
    return ComponentRecord("wire", "tcp", "ompy", "0.1", "m:C", state=state)


def test_the_whole_table() -> None:
    table = {
        before.strip(): set(after.split())
        for before, after in (line.split(">") for line in ALLOWED.strip().splitlines())
    }
    assert {state.value: {after.value for after in TRANSITIONS[state]} for state in State} == table


@pytest.mark.parametrize(("before", "after"), list(itertools.product(State, State)))
def test_a_record_moves_as_the_table_says(before: State, after: State) -> None:
    moving = record(before)
    if after in TRANSITIONS[before]:
        moving.move(after, "because", "trace")
        assert (moving.state, moving.reason, moving.traceback) == (after, "because", "trace")
        assert moving.story == [(before, ""), (after, "because")]
    else:
        with pytest.raises(RuntimeError, match=f"cannot become {after.value} after {before.value}"):
            moving.move(after)
        assert moving.state is before


@pytest.mark.parametrize("state", list(State))
def test_another_process_starts_from_what_is_settled(state: State) -> None:
    original = ComponentRecord("wire", "tcp", "x", "1", "m:C", state=state, reason="why")
    copy = ComponentRecord.from_dict(original.to_dict())
    expected = (state, "why") if state in SETTLED else (State.FOUND, "")
    assert (copy.state, copy.reason) == expected
    assert (copy.full_name, copy.distribution, copy.version, copy.target) == (
        "wire:tcp",
        "x",
        "1",
        "m:C",
    )


def test_a_remark_goes_along_and_is_a_warning() -> None:
    odd = record(State.LOADED)
    assert odd.warning == ""
    odd.remark = odd.told = "it sang"
    copy = ComponentRecord.from_dict(odd.to_dict())
    assert (copy.state, copy.remark, copy.told) == (State.FOUND, "it sang", "it sang")
    assert odd.warning == copy.warning == "wire:tcp of ompy 0.1: it sang"


@pytest.mark.parametrize("state", list(State))
def test_what_is_wanting_is_a_warning(state: State) -> None:
    wanting = {State.BROKEN, State.INCOMPATIBLE, State.OPEN_FAILED, State.SHADOWED}
    said = f"wire:tcp of ompy 0.1: {state.value}" if state in wanting else ""
    assert record(state).warning == said
