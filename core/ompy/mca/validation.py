"""From a text the user wrote to a value of the parameter's type, by pydantic.

`value_type` makes a pydantic type of a declaration; what validates a text, what describes the
values to other programs (`schema`) and what is wrong with a value all come from that one type.
Only launcher and tools import this: pydantic is slow to start, and ranks get values that are
valid already.

Reference: openmpi.md 1.8. Unlike Open MPI, trailing garbage is an error.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)

from ompy.mca.enumerators import Enumerator, FlagEnumerator, RangedEnumerator, integer
from ompy.mca.parameter import INTEGERS, Parameter

# what pydantic calls a problem, and our words for it; every other problem keeps pydantic's
_OUTSIDE: Final = {
    "greater_than_equal": "{value} is less than {ge}, the least there may be",
    "less_than_equal": "{value} is more than {le}, the most there may be",
}


def parse(parameter: Parameter, raw: str) -> object:
    """The value `raw` stands for.

    Raises:
        ValueError: it is no value of this parameter; the text says what one looks like.
    """
    try:
        return _adapter(parameter).validate_python(raw)
    except ValidationError as error:
        reason = _reason(parameter, error)
    raise ValueError(reason)


def schema(parameter: Parameter) -> dict[str, Any]:
    """The JSON schema of a parameter's values."""
    return _adapter(parameter).json_schema()


def value_type(parameter: Parameter) -> Any:
    """The pydantic type of a parameter's values; it takes them as texts, too."""
    if parameter.type == "bool":
        assert parameter.enumerator is not None
        return Annotated[bool, BeforeValidator(_written(parameter.enumerator.number))]
    if parameter.type == "double":
        return Annotated[float, Field(allow_inf_nan=False, **_bounds(parameter))]
    if parameter.type in INTEGERS:
        return _whole_number(parameter)
    if parameter.choices is not None:
        return Annotated[Literal[tuple(parameter.choices)], BeforeValidator(_expand_home)]
    return Annotated[str, AfterValidator(_expand_home)]


@cache
def _adapter(parameter: Parameter) -> TypeAdapter[Any]:
    return TypeAdapter(value_type(parameter))


def _whole_number(parameter: Parameter) -> Any:
    """A number, or a word for one where there are words."""
    words = parameter.enumerator
    bounded = Field(strict=True, **_bounds(parameter))
    if words is None:
        return Annotated[int, bounded, BeforeValidator(_written(integer))]
    described = WithJsonSchema(_schema_of_words(words))
    return Annotated[int, bounded, BeforeValidator(_written(words.number)), described]


def _written(read: Any) -> Any:
    """A validator that reads texts, and leaves what is a value already."""
    return lambda given: read(given) if isinstance(given, str) else given


def _schema_of_words(words: Enumerator) -> dict[str, Any]:
    """Numbers that have names: each with its name; others where there may be some."""
    named = [{"const": number, "title": word} for word, number in words.words.items()]
    if isinstance(words, RangedEnumerator):
        rest = {"minimum": words.least, "maximum": words.largest}
        return {"type": "integer", "anyOf": [*named, rest]}
    if isinstance(words, FlagEnumerator):  # any bits of them
        most = 0
        for number in words.words.values():
            most |= number
        return {"type": "integer", "anyOf": [*named, {"minimum": 0, "maximum": most}]}
    return {"type": "integer", "oneOf": named}


def _bounds(parameter: Parameter) -> dict[str, Any]:
    """The least and largest value: the declaration's, or else the type's."""
    least, largest = INTEGERS.get(parameter.type, (None, None))
    ends = {
        "ge": least if parameter.minimum is None else parameter.minimum,
        "le": largest if parameter.maximum is None else parameter.maximum,
    }
    return {name: end for name, end in ends.items() if end is not None}


def _expand_home(raw: str) -> str:
    """Put the home directory for a leading `~/` and every `:~/` (reference openmpi.md 1.8.5)."""
    home = os.path.expanduser("~/")
    text = home + raw[2:] if raw.startswith("~/") else raw
    return text.replace(":~/", f":{home}")


def _reason(parameter: Parameter, error: ValidationError) -> str:
    """What pydantic has found, in our words."""
    problem = error.errors(include_url=False)[0]
    if problem["type"] == "literal_error":
        return f"not one of {', '.join(parameter.choices or ())}"
    words = _OUTSIDE.get(problem["type"])
    if words is not None:
        return words.format(value=problem["input"], **problem["ctx"])
    return problem["msg"].removeprefix("Value error, ")
