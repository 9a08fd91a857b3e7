"""Every registered parameter can be understood by the user who finds it."""

from __future__ import annotations

import os

import pytest
from ompy.frameworks.catalog import CATALOG
from ompy.mca.parameter import Parameter
from ompy.mca.registry import Registry
from ompy.mca.validation import parse

UNITLESS = {"priority", "exclusivity", "verbose", "port_min_v4"}


def all_parameters() -> list[tuple[str, Parameter]]:
    registry = Registry(CATALOG)
    found = []
    for framework in registry.frameworks:
        registry.load(framework)
        parts = ["base", *(record.name for record in registry.records_of(framework))]
        for part in parts:
            for variable in registry.variables(framework, part):
                found.append((variable.name, variable.parameter))
    return found


PARAMETERS = all_parameters()


def test_there_are_some_from_every_component() -> None:
    names = {name for name, _ in PARAMETERS}
    assert {"pml_ob1_priority", "btl_sm_eager_limit", "btl_tcp_if_include", "btl"} <= names
    assert {"engine_base_loop", "coll_basic_priority", "btl_base_verbose"} <= names


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS, ids=[name for name, _ in PARAMETERS])
def test_parameter(name: str, parameter: Parameter) -> None:
    assert len(parameter.help) > 20
    assert parameter.help.rstrip().endswith("."), "help is a sentence"
    assert 1 <= parameter.level <= 9
    if parameter.type == "size_t":
        assert parameter.unit == "bytes"
    if parameter.type in ("int", "double") and not parameter.words:
        assert parameter.unit or parameter.name in UNITLESS, "a number has a unit"
    default = parameter.default
    if isinstance(default, str):
        default = ",".join(os.path.expanduser(part) for part in default.split(","))
    assert parse(parameter, parameter.text(parameter.default)) == default, (
        "the default is a value the user could have given"
    )
