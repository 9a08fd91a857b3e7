"""What is written can be read back: numbers, words, parameter files."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.mca.enumerators import VERBOSITY, VERBOSITY_WORDS, FlagEnumerator, integer
from ompy.mca.parameter import TYPES, Parameter
from ompy.mca.parameters.parameter_files import read_text
from ompy.mca.parameters.validation import parse_value

LARGEST = (1 << 63) - 1

SUFFIXES = {"": 1, "k": 1024, "M": 1024**2, "g": 1024**3}


@given(st.integers(-LARGEST - 1, LARGEST), st.sampled_from(["{}", "{:#x}", "{:#X}"]))
def test_integers_in_every_base(value: int, form: str) -> None:
    assert integer(form.format(value)) == value
    assert integer(f"{'-' if value < 0 else ''}0{abs(value):o}") == value


@given(st.integers(-(10**6), 10**6), st.sampled_from(list(SUFFIXES)))
def test_suffixes_multiply(value: int, suffix: str) -> None:
    assert integer(f"{value}{suffix}") == value * SUFFIXES[suffix]


@given(st.text(max_size=8))
def test_other_text_is_refused_or_read_as_c_would(raw: str) -> None:
    parameter = Parameter("p", "int", 0, "Help.", level=1)
    text = raw.strip().lower()
    try:
        value = parse_value(parameter, raw)
    except ValueError:
        assert not text.isascii() or not text.isdigit() or text.startswith("0")
    else:
        assert isinstance(value, int)
        assert set(text) <= set("0123456789abcdefxkmg+-")


@given(st.sampled_from(list(VERBOSITY)) | st.integers(-1, 100).map(str))
def test_values_read_back_from_the_text_they_are_shown_as(raw: str) -> None:
    parameter = Parameter("p", "int", 0, "Help.", level=1, enumerator=VERBOSITY_WORDS)
    value = parse_value(parameter, raw)
    assert parse_value(parameter, parameter.text(value)) == value


names = st.text(string.ascii_letters + string.digits + "_.-", min_size=1).filter(
    lambda name: not name.startswith(("#", "//", "/*", "-"))
)
values = st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" "))
noise = st.sampled_from(["", "# x = 1", "// x = 1", "/* x = 1 */", "/* x = 1\ny = 2 */", "   "])


@given(st.lists(st.tuples(noise, names, values.map(str.strip), st.sampled_from(["=", " =  "]))))
def test_parameter_files_give_back_what_was_written(lines) -> None:
    text = "".join(f"{before}\n {name}{equals}{value} \n" for before, name, value, equals in lines)
    problems: list[str] = []
    assignments = read_text(text, "f", problems).assignments
    assert problems == []
    rows = text.split("\n")
    for assignment in assignments:
        number = int(assignment.place.partition(":")[2])
        assert rows[number - 1].partition("=")[0].strip() == assignment.name
    for name in {line[1] for line in lines}:
        written = [value for _, other, value, _ in lines if other == name]
        assert [raw for other, raw, _ in assignments if other == name] == written[::-1]


@given(st.text("ab=#/* \n\"'-x", max_size=40))
def test_no_text_upsets_the_file_reader(text: str) -> None:
    problems: list[str] = []
    content = read_text(text, "f", problems)
    for name, raw, _ in content.assignments:
        assert name
        assert "\n" not in raw
    assert all(word for word, _ in content.exports)
    assert all(problem.startswith("f:") for problem in problems)


@pytest.mark.parametrize("type_name", TYPES)
@given(raw=st.text(max_size=6))
def test_no_text_upsets_the_validation(type_name: str, raw: str) -> None:
    parameter = Parameter("p", type_name, 0, "Help.", level=1)
    try:
        value = parse_value(parameter, raw)
    except ValueError:
        return
    assert parse_value(parameter, parameter.text(value)) == value


BITS = {"send": 1, "put": 2, "get": 4, "atomics": 0x8000}


@given(st.sets(st.sampled_from(list(BITS))))
def test_flags_read_back_from_their_names(chosen: set[str]) -> None:
    parameter = Parameter("p", "int", 0, "Help.", level=1, enumerator=FlagEnumerator(BITS))
    value = sum(BITS[name] for name in chosen)
    assert parse_value(parameter, ",".join(chosen)) == value
    assert parse_value(parameter, parameter.text(value)) == value
    assert parse_value(parameter, f"{value:#x}") == value
