"""Which lines are taken to use what, by their source."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.check.uses import uses_of

# fmt: off
# ruff: noqa: E701, E702


def behind_another_statement(request: Any, room: Any) -> None:
    request.Wait(); print(room[0])


def in_a_body(request: Any, room: Any) -> None:
    if request.Test(): room[0] = 1


def in_an_expression(request: Any, room: Any) -> Any:
    return request.Test() and room[0] + 1


def behind_a_wrapper(finish: Any, room: Any) -> None:
    finish(); room[0] += 1


def before(request: Any, room: Any) -> None:
    print(room[0]); request.Wait()


def in_the_same_call(request: Any, room: Any) -> None:
    print(room[0], request.Wait())


def on_another_line(request: Any, room: Any) -> None:
    request.Wait()
    print(room[0])
# fmt: on


def lines_using_room(function: Any) -> set[int]:
    """Counted from the function's own."""
    code = function.__code__
    uses = uses_of(code)
    tables = (uses.read, uses.stored, uses.elements_read, uses.elements_stored)
    found = {line for table in tables for line, names in table.items() if "room" in names}
    found |= {line for line, given in uses.given.items() if any(g[0] == "room" for g in given)}
    return {line - code.co_firstlineno for line in found}


@pytest.mark.parametrize(
    "function", [behind_another_statement, in_a_body, in_an_expression, behind_a_wrapper]
)
def test_what_may_be_over_is_left_out(function: Any) -> None:
    """The line is looked at before it runs, and is right."""
    assert lines_using_room(function) == set()


@pytest.mark.parametrize(("function", "lines"), [(before, {1}), (on_another_line, {2})])
def test_other_uses_are_seen(function: Any, lines: set[int]) -> None:
    assert lines_using_room(function) == lines


def test_an_argument_before_the_call_that_ends_it() -> None:
    assert lines_using_room(in_the_same_call) == {1}
