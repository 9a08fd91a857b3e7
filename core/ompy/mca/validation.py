"""From a text the user wrote to a value of the parameter's type.

Only launcher and tools import this (it imports pydantic, which is slow to start); ranks get
values that are valid already.

Reference: openmpi.md 1.8. Unlike Open MPI, trailing garbage is an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from ompy.mca.enumerators import integer
from ompy.mca.parameter import INTEGERS, Parameter


def parse(parameter: Parameter, raw: str) -> object:
    """The value `raw` stands for.

    Raises:
        ValueError: it is no value of this parameter; the text says what one looks like.
    """
    try:
        return _adapter(parameter).validate_python(raw)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
    raise ValueError(reason)


def _adapter(parameter: Parameter) -> TypeAdapter[object]:
    base: type
    steps: list[Any]
    if parameter.type == "bool":
        assert parameter.enumerator is not None
        base, steps = bool, [BeforeValidator(_truth(parameter.enumerator.number))]
    elif parameter.type == "double":
        base, steps = float, [Field(allow_inf_nan=False), *_bounds(parameter)]
    elif parameter.type in INTEGERS:
        read = parameter.enumerator.number if parameter.enumerator else integer
        base, steps = int, [BeforeValidator(read), *_bounds(parameter)]
    else:
        base, steps = str, [BeforeValidator(_expand_home)]
    if parameter.choices is not None:
        steps.append(AfterValidator(_chooser(parameter)))
    annotated: Any = Annotated[(base, *steps)]
    return TypeAdapter(annotated)


def _bounds(parameter: Parameter) -> list[Any]:
    least: float | None
    largest: float | None
    least, largest = INTEGERS.get(parameter.type, (None, None))
    least = least if parameter.minimum is None else parameter.minimum
    largest = largest if parameter.maximum is None else parameter.maximum

    def within(value: float) -> float:
        if least is not None and value < least:
            raise ValueError(f"{value} is less than {least}, the least there may be")
        if largest is not None and value > largest:
            raise ValueError(f"{value} is more than {largest}, the most there may be")
        return value

    return [AfterValidator(within)]


def _truth(number: Callable[[str], int]) -> Callable[[str], bool]:
    def read(raw: str) -> bool:
        return number(raw) != 0

    return read


def _expand_home(raw: str) -> str:
    """Put the home directory for a leading `~/` and every `:~/` (reference openmpi.md 1.8.5)."""
    home = os.path.expanduser("~/")
    text = home + raw[2:] if raw.startswith("~/") else raw
    return text.replace(":~/", f":{home}")


def _chooser(parameter: Parameter) -> Callable[[str], str]:
    choices = parameter.choices or {}

    def choose(value: str) -> str:
        if value not in choices:
            raise ValueError(f"not one of {', '.join(choices)}")
        return value

    return choose
