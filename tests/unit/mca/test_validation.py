from __future__ import annotations

import os

import pytest
from ompy.frameworks.btl_base.interface_words import check_words
from ompy.mca.enumerators import (
    AUTO_BOOLEAN,
    VERBOSITY,
    VERBOSITY_WORDS,
    Enumerator,
    FlagEnumerator,
    integer,
)
from ompy.mca.parameter import INTEGERS, TYPES, Flag, Parameter, Scope
from ompy.mca.parameters.validation import parse_value


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
    assert parse_value(parameter("int"), raw) == value


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
        parse_value(parameter(kind), raw)


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_have_the_range_of_their_type(kind: str) -> None:
    least, largest = INTEGERS[kind]
    assert parse_value(parameter(kind), str(least)) == least
    assert parse_value(parameter(kind), str(largest)) == largest
    with pytest.raises(ValueError, match=f"is less than {least}, the least"):
        parse_value(parameter(kind), str(least - 1))
    with pytest.raises(ValueError, match=f"is more than {largest}, the most"):
        parse_value(parameter(kind), str(largest + 1))


def test_bounds_are_inclusive() -> None:
    bounded = parameter("size_t", minimum=128, maximum=1024)
    assert parse_value(bounded, "128") == 128
    assert parse_value(bounded, "1k") == 1024
    for raw in ("127", "1025"):
        with pytest.raises(ValueError, match=r"is (less|more) than"):
            parse_value(bounded, raw)


@pytest.mark.parametrize("raw", ["true", "t", "enabled", "yes", "y", "1", "-1", "7", "True", " y "])
def test_true(raw: str) -> None:
    assert parse_value(parameter("bool"), raw) is True


@pytest.mark.parametrize("raw", ["false", "f", "disabled", "no", "n", "0", "NO"])
def test_false(raw: str) -> None:
    assert parse_value(parameter("bool"), raw) is False


@pytest.mark.parametrize("raw", ["", "maybe", "truee", "1.0", "on"])
def test_neither_true_nor_false(raw: str) -> None:
    with pytest.raises(ValueError, match="not true or false"):
        parse_value(parameter("bool"), raw)


def test_doubles() -> None:
    assert parse_value(parameter("double"), "1.5e3") == 1500.0
    assert parse_value(parameter("double", minimum=0.5), "0.5") == 0.5
    for raw in ("", "x", "1.5s", "nan", "inf"):
        with pytest.raises(ValueError):
            parse_value(parameter("double"), raw)
    with pytest.raises(ValueError, match="is less than"):
        parse_value(parameter("double", minimum=0.5), "0.4")


def test_strings_stay_but_for_the_home_directory() -> None:
    home = os.path.expanduser("~")
    assert parse_value(parameter("string"), "") == ""
    assert parse_value(parameter("string"), " a=b ") == " a=b "
    assert parse_value(parameter("string"), "~/x:/y:~/z") == f"{home}/x:/y:{home}/z"
    assert parse_value(parameter("string"), "a~/x") == "a~/x"


def test_choices() -> None:
    loop = parameter("string", choices={"auto": "best", "uvloop": ""})
    assert parse_value(loop, "uvloop") == "uvloop"
    with pytest.raises(ValueError, match="not one of auto, uvloop"):
        parse_value(loop, "uvlop")


def test_verbosity_knows_words_and_clamps_numbers() -> None:
    verbose = parameter("int", enumerator=VERBOSITY_WORDS)
    assert [parse_value(verbose, word) for word in VERBOSITY] == [-1, 0, 10, 20, 40, 60, 80, 100]
    assert [parse_value(verbose, raw) for raw in ("-5", "30", "1000")] == [-1, 30, 100]
    for raw in ("Error", "12xyz", ""):
        with pytest.raises(ValueError, match='not one of -1:"none", 0:"error", 10:"component"'):
            parse_value(verbose, raw)
    assert [verbose.text(value) for value in (-1, 0, 30)] == ["none", "error", "30"]


def test_an_enumerator_takes_its_names_and_their_numbers() -> None:
    kind = parameter("int", enumerator=Enumerator({"ring": 1, "tree": 4}))
    assert [parse_value(kind, raw) for raw in ("ring", "tree", " 4 ", "0x1")] == [1, 4, 4, 1]
    for raw in ("2", "Ring", "", "ring,tree", "4x"):
        with pytest.raises(ValueError, match='not one of 1:"ring", 4:"tree"'):
            parse_value(kind, raw)
    assert kind.text(4) == "tree"


def test_flags_are_named_or_added_up() -> None:
    words = {"none": 0, "send": 1, "put": 2, "get": 4, "slow": 8}
    flags = parameter("unsigned_int", enumerator=FlagEnumerator(words, (("put", "slow"),)))
    assert [parse_value(flags, raw) for raw in ("send", "send, get", "5", "none", "")] == [
        1,
        5,
        5,
        0,
        0,
    ]
    assert [flags.text(value) for value in (0, 1, 6)] == ["none", "send", "put,get"]
    with pytest.raises(ValueError, match="put and slow exclude each other"):
        parse_value(flags, "slow,put")
    with pytest.raises(ValueError, match="0x10 are no flags"):
        parse_value(flags, "17")
    with pytest.raises(ValueError, match="not one of"):
        parse_value(flags, "send,sned")


def test_a_switch_may_have_a_third_position() -> None:
    switch = parameter("int", default=-1, enumerator=AUTO_BOOLEAN)
    assert [parse_value(switch, raw) for raw in ("auto", "AUTO", "-1", "yes", "0", "7")] == [
        -1, -1, -1, 1, 0, 1,
    ]  # fmt: skip
    assert [switch.text(value) for value in (-1, 0, 1)] == ["auto", "false", "true"]
    with pytest.raises(ValueError, match="or auto"):
        parse_value(switch, "automatic")


@pytest.mark.parametrize(
    ("declaration", "why"),
    [
        ({"type": "integer"}, "there is no type integer"),
        ({"level": 0}, "there is no level 0"),
        ({"help": ""}, "it has no help"),
        ({"flags": Flag.DEFAULT_ONLY | Flag.ENVIRONMENT_ONLY}, "cannot come from the environment"),
        ({"type": "string", "enumerator": AUTO_BOOLEAN}, "words for numbers do not fit"),
        ({"choices": {"1": ""}}, "a choice of words does not fit"),
    ],
)
def test_a_declaration_that_contradicts_itself(declaration: dict, why: str) -> None:
    sound = {"name": "p", "type": "int", "default": 1, "help": "Help.", "level": 1}
    Parameter(**sound)
    with pytest.raises(ValueError, match=f"parameter p: .*{why}"):
        Parameter(**(sound | declaration))


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("extra", [Flag.NONE, Flag.DEFAULT_ONLY])
def test_only_what_may_change_is_settable(scope: Scope, extra: Flag) -> None:
    asked = Flag.SETTABLE | extra
    made = Parameter("p", "int", 1, "Help.", level=1, scope=scope, flags=asked)
    assert bool(made.flags & Flag.SETTABLE) == (scope >= Scope.LOCAL and not extra)


def test_every_type_of_the_reference_is_there() -> None:
    assert set(TYPES) == {
        "int", "unsigned_int", "unsigned_long", "unsigned_long_long", "size_t", "string",
        "version_string", "bool", "double", "long", "int32_t", "uint32_t", "int64_t", "uint64_t",
    }  # fmt: skip


@pytest.mark.parametrize(
    "word", ["999.1.1.1/99", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/x", "a/8"]
)
def test_interfaces_are_names_or_networks(word: str) -> None:
    declared = parameter("string", "", check=check_words)
    assert parse_value(declared, " lo , 10.0.0.0/8,eth0") == " lo , 10.0.0.0/8,eth0"
    with pytest.raises(ValueError, match=f"^{word} is not a network such as 10.1.0.0/16$"):
        parse_value(declared, f"lo,{word}")


def test_a_check_is_of_texts() -> None:
    with pytest.raises(ValueError, match="a check of texts does not fit the type int"):
        parameter("int", 0, check=check_words)
