"""How text is laid out."""

from __future__ import annotations

import pytest
from ompy.cli import terminal
from ompy.cli.info.parsable import quoted
from ompy.cli.terminal import format_table, labelled, one_line, wants_colour


def test_a_label_ends_at_column_24_and_a_value_begins_at_27() -> None:
    (line,) = labelled("MCA btl", "tcp", None)
    assert line.index(":") == 24
    assert line.index("tcp") == 26
    assert labelled("a" * 24, "x", None) == [f"{'a' * 24}: x"]
    assert labelled("a" * 25, "x", None) == [f"{'a' * 25}: x"], "flush left"


def test_lines_are_wrapped_at_spaces_below_the_value() -> None:
    lines = labelled("label", "one two " + "3" * 30 + " four-and-five", 50)
    assert lines == [
        "                   label: one two",
        " " * 26 + "3" * 30,
        " " * 26 + "four-and-five",
    ]
    assert labelled("label", "one two three", 20) == ["                   label: one two three"]
    assert labelled("label", "", 80) == labelled("label", "", None) == [" " * 19 + "label:"]


def test_tables() -> None:
    assert format_table([["a", "bb", "c"], ["aa", "b", "long"]]) == [
        ["a ", "bb", "c"],
        ["aa", "b ", "long"],
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain: text", "plain: text"),
        ("é", "é"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\udcff", "\\udcff"),
    ],
)
def test_one_line(text: str, expected: str) -> None:
    assert one_line(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("", ""), ("a b", "a b"), ('a"b', 'a"b'), ("a:b", '"a:b"'), ('a:"b"', '"a:\\"b\\""')],
)
def test_quotes_are_for_colons(value: str, expected: str) -> None:
    assert quoted(value) == expected


@pytest.mark.parametrize(
    ("choice", "is_terminal", "environ", "expected"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", True, {"TERM": "dumb"}, False),
        ("always", False, {"NO_COLOR": "1"}, True),
        ("never", True, {}, False),
    ],
)
def test_colour(
    choice: str,
    is_terminal: bool,
    environ: dict[str, str],
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(terminal, "is_terminal", lambda: is_terminal)
    assert wants_colour(choice, environ) is expected
