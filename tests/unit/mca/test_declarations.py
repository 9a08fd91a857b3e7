"""What a component may say about itself."""

from __future__ import annotations

import pytest
from ompy.mca.component import Component
from ompy.mca.enumerators import VERBOSITY_WORDS, Enumerator
from ompy.mca.parameter import Parameter, Synonym
from ompy.mca.plugins.component_records import ComponentRecord
from ompy.mca.plugins.declarations import component_fault, name_fault

RECORD = ComponentRecord("wire", "tcp", "ompy-wire-tcp", "1.0", "m:C")
WORDS = Enumerator({"low": 1, "high": 9})


class Wire(Component):
    framework, name, version, api = "wire", "tcp", "1.0", (3, 1)


class Contract(Wire):
    pass


def fault(catalog, **attributes: object) -> str:
    made = type("Made", (Wire,), attributes)()
    return component_fault(made, RECORD, catalog[1])


def declared(catalog, kind: str, default: object, **rest: object) -> str:
    parameter = Parameter("size", kind, default, "How much.", level=1, **rest)
    return fault(catalog, parameters=(parameter,))


@pytest.mark.parametrize("name", ["tcp", "a_b", "X2", "2x", "_", "n" * 63])
def test_names(name: str) -> None:
    assert name_fault(name) == ""


@pytest.mark.parametrize("name", ["", "a-b", "a.b", "a b", "a,b", "^a", "ä", "²", "n" * 64, "base"])
def test_no_names(name: str) -> None:
    assert name_fault(name)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, ""),
        ({"api": (3, 0)}, ""),
        ({"parameters": []}, ""),
        ({"name": "udp"}, "its entry point says wire:tcp, it says wire:udp"),
        ({"version": 2}, "its version is 2, not a text such as 1.0"),
        ({"version": "1.²"}, "its version is '1.²', not a text such as 1.0"),
        ({"api": (3, True)}, "its api is (3, True), not (major, minor)"),
        ({"api": (3, 1, 0)}, "its api is (3, 1, 0), not (major, minor)"),
        ({"api": None}, "its api is None, not (major, minor)"),
        ({"parameters": {}}, "its parameters are a dict, not a tuple"),
        ({"parameters": (7,)}, "its parameters are not Parameter objects: 7"),
        ({"exclusive": (("a", "b"),)}, "it excludes ('a', 'b'), which is no pair of its"),
        ({"exclusive": 7}, "it excludes 7, which is no pair of its"),
    ],
)
def test_identity(catalog, attributes: dict[str, object], expected: str) -> None:
    said = fault(catalog, **attributes)
    assert said.startswith(expected)
    assert bool(said) == bool(expected)


def test_the_contract(catalog) -> None:
    framework = catalog[1]._replace(contracts=(Contract, list))
    assert component_fault(Contract(), RECORD, framework) == ""
    said = "it is no Contract or list, as a component of wire has to be"
    assert component_fault(Wire(), RECORD, framework) == said


@pytest.mark.parametrize(
    ("kind", "default", "rest"),
    [
        ("int", -5, {}),
        ("int", "5", {}),
        ("int", True, {}),
        ("int", 1.0, {}),
        ("int", None, {}),
        ("int", 1 << 31, {}),
        ("int", (1 << 31) - 1, {}),
        ("unsigned_int", -1, {}),
        ("size_t", 0, {}),
        ("size_t", 5, {"minimum": 6}),
        ("size_t", 7, {"maximum": 6}),
        ("int", 1, {"enumerator": WORDS}),
        ("int", 2, {"enumerator": WORDS}),
        ("int", 100, {"enumerator": VERBOSITY_WORDS}),
        ("int", 101, {"enumerator": VERBOSITY_WORDS}),
        ("bool", True, {}),
        ("bool", 1, {}),
        ("bool", "true", {}),
        ("double", 1, {}),
        ("double", 1.5, {}),
        ("double", True, {}),
        ("double", float("nan"), {}),
        ("double", float("inf"), {}),
        ("double", -0.5, {"minimum": 0}),
        ("string", "", {}),
        ("string", 5, {}),
        ("string", "a", {"choices": {"a": "", "b": ""}}),
        ("string", "c", {"choices": {"a": "", "b": ""}}),
    ],
)
def test_a_default_is_a_value_the_user_could_have_given(
    catalog, kind: str, default: object, rest: dict[str, object]
) -> None:
    """The check that needs no pydantic says the same as the one the user's values go through."""
    from ompy.mca.parameters.validation import parse_value

    parameter = Parameter("size", kind, default, "How much.", level=1, **rest)
    try:
        valid = parse_value(parameter, parameter.text(default)) == default
    except (ValueError, AssertionError):
        valid = False
    right = {"bool": bool, "double": int | float, "string": str}.get(kind, int)
    valid = valid and isinstance(default, right) and isinstance(default, bool) == (kind == "bool")
    said = declared(catalog, kind, default, **rest)
    assert (said == "") == valid
    if said:
        assert said.startswith(f"its parameter size cannot be {default!r}, its default: ")


def test_names_of_parameters(catalog) -> None:
    def named(*names: str) -> str:
        made = [Parameter(name, "int", 1, "How much.", level=1) for name in names]
        return fault(catalog, parameters=made)

    assert named("a", "a_b", "c2") == ""
    assert named("a", "a") == "its parameter a is there twice"
    assert named("major_version") == "its parameter major_version is one every component has"
    for wrong in ("", "a-b", "a b", "a=b", 7):
        assert "is not made of letters, digits and _" in named(wrong)


@pytest.mark.parametrize(
    ("synonyms", "expected"),
    [
        ((Synonym("wire_old_size"),), ""),
        ((Synonym("pml_ob1_priority"),), "has the synonym pml_ob1_priority, which does not begin"),
        ((Synonym("wire_a-b"),), "has the synonym wire_a-b, which does not begin"),
        (("wire_old_size",), "has a synonym that is not a Synonym: 'wire_old_size'"),
        ((Synonym("wire_tcp_size"),), "its synonym wire_tcp_size is there twice"),
        ((Synonym("wire_a"), Synonym("wire_a")), "its synonym wire_a is there twice"),
    ],
)
def test_synonyms(catalog, synonyms: tuple[object, ...], expected: str) -> None:
    said = declared(catalog, "int", 1, synonyms=synonyms)
    assert expected in said
    assert bool(said) == bool(expected)


def test_exclusive_parameters(catalog) -> None:
    parameters = [Parameter(name, "int", 1, "How much.", level=1) for name in ("a", "b")]
    assert fault(catalog, parameters=parameters, exclusive=(("a", "b"),)) == ""
    assert fault(catalog, parameters=parameters, exclusive=(("a", "c"),))


def test_help_is_a_text(catalog) -> None:
    assert fault(catalog, parameters=(Parameter("a", "int", 1, 7, level=1),)) == (
        "its parameter a has help that is not a text"
    )
