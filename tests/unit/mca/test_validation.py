from __future__ import annotations

import os

import pytest
from ompy.mca.parameter import VERBOSITY, Parameter
from ompy.mca.validation import LARGEST, integer, parse


def parameter(kind: str, default: object = None, **rest: object) -> Parameter:
    return Parameter("p", kind, default, "Help.", level=1, **rest)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("0", 0),
        ("12", 12),
        (" 12 ", 12),
        ("+7", 7),
        ("-3", -3),
        ("0x10", 16),
        ("0XfF", 255),
        ("-0x10", -16),
        ("017", 15),
        ("00", 0),
        ("4k", 4096),
        ("4K", 4096),
        ("2m", 2 << 20),
        ("1g", 1 << 30),
        ("0x1k", 1024),
        ("010k", 8192),
        ("-1k", -1024),
    ],
)
def test_integers(raw: str, value: int) -> None:
    assert integer(raw) == value
    assert parse(parameter("int"), raw) == value


@pytest.mark.parametrize(
    "raw",
    [
        *["", " ", "abc", "12xyz", "1 2", "08", "0x", "0xg", "k", "4kk", "4kb", "4t", "1.5", "1e3"],
        *["1_000", "--1", "- 1", "0x0x1", "\N{ARABIC-INDIC DIGIT THREE}", "0o17", "true"],
    ],
)
@pytest.mark.parametrize("kind", ["int", "size_t"])
def test_what_is_no_integer(raw: str, kind: str) -> None:
    with pytest.raises(ValueError, match="not a whole number"):
        parse(parameter(kind), raw)


def test_integers_have_the_range_of_the_machine() -> None:
    assert parse(parameter("int"), str(-LARGEST - 1)) == -LARGEST - 1
    assert parse(parameter("size_t"), str(LARGEST)) == LARGEST
    for kind, raw in [("int", str(LARGEST + 1)), ("int", str(-LARGEST - 2)), ("size_t", "-1")]:
        with pytest.raises(ValueError, match=r"greater than|less than"):
            parse(parameter(kind), raw)


def test_bounds_are_inclusive() -> None:
    bounded = parameter("size_t", minimum=128, maximum=1024)
    assert parse(bounded, "128") == 128
    assert parse(bounded, "1k") == 1024
    for raw in ("127", "1025"):
        with pytest.raises(ValueError, match=r"(greater|less) than or equal to"):
            parse(bounded, raw)


@pytest.mark.parametrize("raw", ["true", "t", "enabled", "yes", "y", "1", "-1", "7", "True", " y "])
def test_true(raw: str) -> None:
    assert parse(parameter("bool"), raw) is True


@pytest.mark.parametrize("raw", ["false", "f", "disabled", "no", "n", "0", "NO"])
def test_false(raw: str) -> None:
    assert parse(parameter("bool"), raw) is False


@pytest.mark.parametrize("raw", ["", "maybe", "truee", "1.0", "on"])
def test_neither_true_nor_false(raw: str) -> None:
    with pytest.raises(ValueError, match="not true or false"):
        parse(parameter("bool"), raw)


def test_doubles() -> None:
    assert parse(parameter("double"), "1.5e3") == 1500.0
    assert parse(parameter("double", minimum=0.5), "0.5") == 0.5
    for raw in ("", "x", "1.5s", "nan", "inf"):
        with pytest.raises(ValueError):
            parse(parameter("double"), raw)
    with pytest.raises(ValueError, match="greater than"):
        parse(parameter("double", minimum=0.5), "0.4")


def test_strings_stay_but_for_the_home_directory() -> None:
    home = os.path.expanduser("~")
    assert parse(parameter("string"), "") == ""
    assert parse(parameter("string"), " a=b ") == " a=b "
    assert parse(parameter("string"), "~/x:/y:~/z") == f"{home}/x:/y:{home}/z"
    assert parse(parameter("string"), "a~/x") == "a~/x"


def test_choices() -> None:
    loop = parameter("string", choices={"auto": "best", "uvloop": ""})
    assert parse(loop, "uvloop") == "uvloop"
    with pytest.raises(ValueError, match="not one of auto, uvloop"):
        parse(loop, "uvlop")
    size = parameter("int", choices={"1": "", "2": ""})
    assert parse(size, "0x2") == 2
    with pytest.raises(ValueError, match="not one of 1, 2"):
        parse(size, "3")


def test_verbosity_knows_words_and_clamps_numbers() -> None:
    verbose = parameter("int", words=VERBOSITY, minimum=-1, maximum=100, clamp=True)
    assert [parse(verbose, word) for word in VERBOSITY] == [-1, 0, 10, 20, 40, 60, 80, 100]
    assert [parse(verbose, raw) for raw in ("-5", "30", "1000")] == [-1, 30, 100]
    for raw in ("Error", "12xyz", ""):
        with pytest.raises(ValueError, match="not one of none, error, component"):
            parse(verbose, raw)
    assert [verbose.text(value) for value in (-1, 0, 30)] == ["none", "error", "30"]
