"""What a component says about itself, looked at before it is believed.

Needs no pydantic: ranks check what strangers declare, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ompy.mca.component import Component
from ompy.mca.enumerators import Enumerator
from ompy.mca.parameter import (
    BASE,
    INTEGERS,
    LAYERS,
    Parameter,
    Synonym,
    is_known_elsewhere,
)
from ompy.mca.parameters.base_parameters import version_parameters

if TYPE_CHECKING:
    from ompy.mca.groups import Framework
    from ompy.mca.plugins.component_records import ComponentRecord

NAME_LONGEST: Final = 63  # characters; reference openmpi.md 1.1
RESERVED: Final = frozenset(parameter.name for parameter in version_parameters("0"))


def name_fault(name: str) -> str:
    """Why a component cannot be called this; empty if it can.

    The names of its parameters begin with it, and those have to fit an environment variable.
    """
    if name == BASE:
        return f"{BASE} is no name for a component: it stands for the framework itself"
    if not _is_word(name):
        return "the name of a component is made of letters, digits and _"
    if len(name) > NAME_LONGEST:
        return f"the name of a component has {NAME_LONGEST} characters at most, not {len(name)}"
    return ""


def component_fault(found: object, record: ComponentRecord, framework: Framework) -> str:
    """Why an object cannot be the component its entry point promises; empty if it can.

    Args:
        found: the object.
        record: its entry point.
        framework: it is offered for; its `api` is not None.
    """
    if isinstance(found, type) and issubclass(found, Component):
        return f"{record.target} is a class; an entry point names an object of it"
    if not isinstance(found, Component):
        return f"{record.target} is no ompy component but {type(found).__name__}"
    name = (getattr(found, "framework", ""), getattr(found, "name", ""))
    if name != (record.framework, record.name):
        said = f"{name[0]}:{name[1]}"
        return f"its entry point says {record.full_name}, it says {said}"
    if not isinstance(found, framework.contracts):
        wanted = " or ".join(contract.__name__ for contract in framework.contracts)
        return f"it is no {wanted}, as a component of {framework.name} has to be"
    return _version_fault(found, framework) or next(_parameter_faults(found), "")


def _version_fault(found: Component, framework: Framework) -> str:
    assert framework.api is not None, f"{framework.name} has no components"
    version, api = getattr(found, "version", None), getattr(found, "api", None)
    if not (isinstance(version, str) and version.isascii()):
        return f"its version is {version!r}, not a text such as 1.0"
    if not (isinstance(api, tuple) and len(api) == 2 and all(type(n) is int for n in api)):
        return f"its api is {api!r}, not (major, minor)"
    ours = framework.api
    if api[0] == ours[0] and api[1] <= ours[1]:
        return ""
    return (
        f"made for {framework.name} API {api[0]}.{api[1]}, this is {ours[0]}.{ours[1]} "
        "(same major, minor not newer)"
    )


def _parameter_faults(found: Component) -> Iterator[str]:
    parameters: object = found.parameters
    if not isinstance(parameters, tuple | list):
        yield f"its parameters are a {type(parameters).__name__}, not a tuple"
        return
    names: list[str] = []
    synonyms: list[str] = []
    for parameter in parameters:
        if not isinstance(parameter, Parameter):
            yield f"its parameters are not Parameter objects: {parameter!r}"
            return
        if not (isinstance(parameter.name, str) and _is_word(parameter.name)):
            yield f"its parameter {parameter.name!r} is not made of letters, digits and _"
        elif parameter.name in RESERVED:
            yield f"its parameter {parameter.name} is one every component has"
        elif parameter.name in names:
            yield f"its parameter {parameter.name} is there twice"
        else:
            names.append(parameter.name)
            yield from _declaration_faults(found.framework, parameter)
            synonyms += [synonym.name for synonym in parameter.synonyms]
    full_names = [f"{found.framework}_{found.name}_{name}" for name in names]
    for name in synonyms:
        if synonyms.count(name) > 1 or name in full_names:
            yield f"its synonym {name} is there twice"
    yield from _exclusive_faults(found, names)


def _declaration_faults(framework: str, parameter: Parameter) -> Iterator[str]:
    """What `Parameter` itself does not refuse."""
    its = f"its parameter {parameter.name}"
    if not isinstance(parameter.help, str):
        yield f"{its} has help that is not a text"
    for synonym in parameter.synonyms:
        if not isinstance(synonym, Synonym):
            yield f"{its} has a synonym that is not a Synonym: {synonym!r}"
        elif not (_is_ours(framework, synonym.name) and _is_word(synonym.name)):
            yield f"{its} has the synonym {synonym.name}, which does not begin with {framework}_"
    reason = _default_fault(parameter)
    if reason:
        yield f"{its} cannot be {parameter.default!r}, its default: {reason}"


def _is_ours(framework: str, name: str) -> bool:
    """Whether a component of a framework may have this synonym."""
    return name.startswith((f"{framework}_", *LAYERS)) or is_known_elsewhere(name, framework)


def _default_fault(parameter: Parameter) -> str:
    value = parameter.default
    if parameter.type == "bool":
        return "" if isinstance(value, bool) else "neither True nor False"
    if parameter.type in INTEGERS or parameter.type == "double":
        return _number_fault(parameter, value)
    if not isinstance(value, str):
        return "not a text"
    if parameter.choices is not None and value not in parameter.choices:
        return f"not one of {', '.join(parameter.choices)}"
    return ""


def _number_fault(parameter: Parameter, value: object) -> str:
    whole = parameter.type in INTEGERS
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        return "not a whole number" if whole else "not a number"
    assert isinstance(value, int | float)
    least, largest = INTEGERS.get(parameter.type, (-math.inf, math.inf))
    least = least if parameter.minimum is None else parameter.minimum
    largest = largest if parameter.maximum is None else parameter.maximum
    if not (math.isfinite(value) and least <= value <= largest):
        return f"not between {least} and {largest}"
    return _enumerator_fault(parameter.enumerator, int(value)) if parameter.enumerator else ""


def _enumerator_fault(enumerator: Enumerator, value: int) -> str:
    try:
        accepted = enumerator.accept(value)
    except ValueError as error:
        return str(error)
    return "" if accepted == value else f"{accepted} would be taken for it"


def _exclusive_faults(found: Component, names: list[str]) -> Iterator[str]:
    exclusive: object = found.exclusive
    pairs = exclusive if isinstance(exclusive, tuple | list) else (exclusive,)
    for pair in pairs:
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and {*pair} <= {*names}):
            yield f"it excludes {pair!r}, which is no pair of its parameters"


def _is_word(text: str) -> bool:
    return text.isascii() and text.replace("_", "a").isalnum()
