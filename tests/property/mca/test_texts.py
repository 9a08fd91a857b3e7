"""What is written can be read back: numbers, words, parameter files."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.mca.parameter import VERBOSITY, Parameter
from ompy.mca.settings import read_file_text
from ompy.mca.validation import LARGEST, integer, parse

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
        value = parse(parameter, raw)
    except ValueError:
        assert not text.isascii() or not text.isdigit() or text.startswith("0")
    else:
        assert isinstance(value, int)
        assert set(text) <= set("0123456789abcdefxkmg+-")


@given(st.sampled_from(list(VERBOSITY)) | st.integers(-1, 100).map(str))
def test_values_read_back_from_the_text_they_are_shown_as(raw: str) -> None:
    parameter = Parameter(
        "p", "int", 0, "Help.", level=1, words=VERBOSITY, minimum=-1, maximum=100, clamp=True
    )
    value = parse(parameter, raw)
    assert parse(parameter, parameter.text(value)) == value


names = st.text(string.ascii_letters + string.digits + "_.-", min_size=1).filter(
    lambda name: not name.startswith(("#", "//", "/*"))
)
values = st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" "))
noise = st.sampled_from(["", "# x = 1", "// x = 1", "/* x = 1 */", "/* x = 1\ny = 2 */", "   "])


@given(st.lists(st.tuples(noise, names, values.map(str.strip), st.sampled_from(["=", " =  "]))))
def test_parameter_files_give_back_what_was_written(lines) -> None:
    text = "".join(f"{before}\n {name}{equals}{value} \n" for before, name, value, equals in lines)
    problems: list[str] = []
    settings = read_file_text(text, "f", problems)
    assert problems == []
    rows = text.split("\n")
    for setting in settings:
        number = int(setting.origin.detail.partition(":")[2])
        assert rows[number - 1].partition("=")[0].strip() == setting.name
    for name in {line[1] for line in lines}:
        written = [value for _, other, value, _ in lines if other == name]
        assert [setting.raw for setting in settings if setting.name == name] == written[::-1]


@given(st.text("ab=#/* \n", max_size=40))
def test_no_text_upsets_the_file_reader(text: str) -> None:
    problems: list[str] = []
    for setting in read_file_text(text, "f", problems):
        assert setting.name
        assert "\n" not in setting.raw
    assert all(problem.startswith("f:") for problem in problems)


@pytest.mark.parametrize("type_name", ["int", "size_t", "bool", "double"])
@given(raw=st.text(max_size=6))
def test_no_text_upsets_the_validation(type_name: str, raw: str) -> None:
    parameter = Parameter("p", type_name, 0, "Help.", level=1)
    try:
        value = parse(parameter, raw)
    except ValueError:
        return
    assert parse(parameter, parameter.text(value)) == value
