"""From a text the user wrote to a value of the parameter's type, by pydantic.

`value_schema` makes a pydantic core schema of a declaration; what validates a text, what describes
the values to other programs (`json_schema`) and what is wrong with a value all come from that one
schema. It is made for pydantic's core, which is there in a third of the time that pydantic's models
take: the launcher needs no more. Ranks get values that are valid already.

Reference: openmpi.md 1.8. Unlike Open MPI, trailing garbage is an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from pydantic_core import CoreSchema, SchemaValidator, ValidationError, core_schema

from ompy.mca.enumerators import Enumerator, FlagEnumerator, RangedEnumerator, integer
from ompy.mca.parameter import INTEGERS, Parameter

# what pydantic calls a problem, and our words for it; every other problem keeps pydantic's
_OUTSIDE: Final = {
    "greater_than_equal": "{value} is less than {ge}, the least there may be",
    "less_than_equal": "{value} is more than {le}, the most there may be",
}


def parse_value(parameter: Parameter, raw: str) -> object:
    """The value `raw` stands for.

    Raises:
        ValueError: it is no value of this parameter; the text says what one looks like.
    """
    try:
        return _validator(parameter).validate_python(raw)
    except ValidationError as error:
        reason = _reason(parameter, error)
    raise ValueError(reason)


def json_schema(parameter: Parameter) -> dict[str, Any]:
    """The JSON schema of a parameter's values. Imports all of pydantic."""
    from pydantic.json_schema import GenerateJsonSchema

    if parameter.enumerator is not None and parameter.type != "bool":
        return _schema_of_words(parameter.enumerator)
    return GenerateJsonSchema().generate(value_schema(parameter))


def value_schema(parameter: Parameter) -> CoreSchema:
    """The pydantic schema of a parameter's values; it takes them as texts, too."""
    words = parameter.enumerator
    if parameter.type == "bool":
        assert words is not None
        return _written(words.number, core_schema.bool_schema())
    if parameter.type == "double":
        return core_schema.float_schema(allow_inf_nan=False, **_bounds(parameter))
    if parameter.type in INTEGERS:
        bounded = core_schema.int_schema(strict=True, **_bounds(parameter))
        return _written(integer if words is None else words.number, bounded)
    if parameter.choices is not None:
        spelt = core_schema.literal_schema(list(parameter.choices))
        return _written(_expand_home, _checked(spelt, parameter.check))
    return _written(_expand_home, _checked(core_schema.str_schema(), parameter.check))


@cache
def _validator(parameter: Parameter) -> SchemaValidator:
    return SchemaValidator(value_schema(parameter))


def _written(read: Callable[[str], object], value: CoreSchema) -> CoreSchema:
    """Values, or texts that `read` makes values of."""

    def read_text(given: object) -> object:
        return read(given) if isinstance(given, str) else given

    return core_schema.no_info_before_validator_function(read_text, value)


def _checked(text: CoreSchema, check: Callable[[str], object] | None) -> CoreSchema:
    """Texts that a declaration's own check lets pass."""
    if check is None:
        return text

    def let_pass(value: str) -> str:
        check(value)
        return value

    return core_schema.no_info_after_validator_function(let_pass, text)


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
