"""Every registered parameter can be understood by the user who finds it."""

from __future__ import annotations

import os

import pytest
from ompy.frameworks.catalog import CATALOG
from ompy.mca.parameter import INTEGERS, Parameter
from ompy.mca.parameters.validation import parse_value
from ompy.mca.registry import Registry


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
    number = parameter.type in INTEGERS or parameter.type == "double"
    assert bool(parameter.unit) == number, "a number has a unit; words and switches have none"
    given = parse_value(parameter, parameter.text(parameter.default))
    if isinstance(parameter.default, str):
        assert _absolute(str(given)) == _absolute(parameter.default)
    else:
        assert given == parameter.default, "the default is a value the user could have given"


def _absolute(paths: str) -> str:
    return ",".join(os.path.expanduser(path) for path in paths.split(","))
