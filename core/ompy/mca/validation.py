"""From a text the user wrote to a value of the parameter's type.

Only launcher and tools import this; ranks get values that are valid already. What a number with
a fraction looks like pydantic decides, which is slow to start and imported for that alone.

Reference: openmpi.md 1.8. Unlike Open MPI, trailing garbage is an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from ompy.mca.enumerators import integer
from ompy.mca.parameter import INTEGERS, Parameter


def parse(parameter: Parameter, raw: str) -> object:
    """The value `raw` stands for.

    Raises:
        ValueError: it is no value of this parameter; the text says what one looks like.
    """
    value: Any = raw
    for step in _steps(parameter):
        value = step(value)
    return value


def _steps(parameter: Parameter) -> Iterator[Callable[[Any], object]]:
    """What makes a text a value, in this order; each raises ValueError for one that is none."""
    if parameter.type == "bool":
        assert parameter.enumerator is not None
        yield parameter.enumerator.number
        yield bool
    elif parameter.type == "double":
        yield _fraction
        yield _bounds(parameter)
    elif parameter.type in INTEGERS:
        yield parameter.enumerator.number if parameter.enumerator else integer
        yield _bounds(parameter)
    else:
        yield _expand_home
    if parameter.choices is not None:
        yield _chooser(parameter)


def _fraction(raw: str) -> float:
    from typing import Annotated

    from pydantic import Field, TypeAdapter, ValidationError

    finite: Any = Annotated[float, Field(allow_inf_nan=False)]
    try:
        return float(TypeAdapter(finite).validate_python(raw))
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
    raise ValueError(reason)


def _bounds(parameter: Parameter) -> Callable[[float], float]:
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

    return within


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
