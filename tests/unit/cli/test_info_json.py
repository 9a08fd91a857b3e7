"""The JSON documents of `ompy-info` and their schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from ompy.mca.parameter import TYPES, Scope
from ompy.mca.plugins.component_records import State

from tests.support.info_document import schema, validate
from tests.support.installed import Installed
from tests.unit.cli.conftest import Info

VIEWS = [
    "",
    "--all",
    "--all --internal --mca btl ^tcp",
    "--param btl tcp --type bool",
    "--plugins --why btl --why pigeon --why btl_pigeon_flock --mca btl_pigeon_flock 7",
    "--path all --arch --hostname --config",
    "--selected-only --show-failed",
    "--version",
    "--mca btl_pigeon_flock none --why btl_pigeon_flock",
]


def document(info: Info, arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(info(*arguments.split(), "--json").out)
    return found


@pytest.mark.parametrize("arguments", VIEWS)
def test_documents_are_as_the_schema_says(info: Info, arguments: str) -> None:
    made = document(info, arguments)
    assert set(made) > {"format", "ompy", "problems", "notices"}
    validate(made)


def test_values_are_as_their_own_schemas_say(info: Info) -> None:
    parameters = document(info, "--all --internal")["parameters"]
    for parameter in parameters:
        Draft202012Validator.check_schema(parameter["value_schema"])
        for value in (parameter["value"], parameter["default"]):
            Draft202012Validator(parameter["value_schema"]).validate(value)
    bounded = [one["value_schema"] for one in parameters if one["minimum"] is not None]
    assert bounded
    assert all("minimum" in told for told in bounded)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("parameters", 0, "level"), 10),
        (("parameters", 0, "colour"), "red"),
        (("parameters", 0, "value"), None),
        (("components", 0, "state"), "lost"),
        (("notices",), [1]),
        (("format",), 2),
    ],
)
def test_the_schema_refuses_what_is_otherwise(
    info: Info, place: tuple[Any, ...], value: object
) -> None:
    made = document(info, "--param btl pigeon")
    validate(made)
    where = made
    for step in place[:-1]:
        where = where[step]
    where[place[-1]] = value
    with pytest.raises(ValidationError):
        validate(made)


def test_the_schema_is_printed_and_is_one(info: Info) -> None:
    printed = json.loads(info("--json-schema").out)
    Draft202012Validator.check_schema(printed)
    assert printed == schema()


def test_the_schema_knows_every_word(info: Info) -> None:
    known = schema()["$defs"]
    assert known["state"]["enum"] == [state.value for state in State]
    parameter = known["parameter"]["properties"]
    assert set(parameter["type"]["enum"]) == set(TYPES)
    assert parameter["scope"]["enum"] == [scope.name.lower() for scope in Scope]


def test_values_are_of_the_parameters_type(info: Info) -> None:
    made = document(info, "--param btl pigeon --level 9 --mca btl_pigeon_rest yes")
    found = {one["name"]: one for one in made["parameters"]}
    assert found["btl_pigeon_flock"]["value"] == 3
    assert found["btl_pigeon_rest"]["value"] is True
    assert found["btl_pigeon_rest"]["source"] == "command line"
    assert found["btl_pigeon_route"]["value"] == "a:b"
    assert found["btl_pigeon_flock"]["synonyms"] == [{"name": "btl_dove_flock", "deprecated": True}]


def test_what_a_level_hides_is_counted(info: Info) -> None:
    made = document(info, "--param btl pigeon")
    assert made["hidden"] == [{"framework": "btl", "component": "pigeon", "parameters": 2}]


def test_what_a_package_prints_is_a_remark(info: Info, installed: Installed) -> None:
    file = installed.path / "pigeon_post.py"
    file.write_text("print('coo')\n" + file.read_text())
    made = document(info, "--plugins")
    validate(made)
    (pigeon,) = (plugin for plugin in made["plugins"] if plugin["name"] == "pigeon")
    assert pigeon["remark"] == "its import wrote to standard output: 'coo'"
    assert pigeon["remark"] in info("--plugins").out
