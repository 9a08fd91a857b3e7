"""From a text the user wrote to a value of the parameter's type.

Only launcher and tools import this (it imports pydantic, which is slow to start); ranks get
values that are valid already.

Reference: openmpi.md 1.8. Unlike Open MPI, trailing garbage is an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from ompy.mca.parameter import Parameter

FACTORS: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}  # reference openmpi.md 1.8.1
TRUE: Final = frozenset({"true", "t", "enabled", "yes", "y"})  # reference openmpi.md 1.8.3
FALSE: Final = frozenset({"false", "f", "disabled", "no", "n"})
LARGEST: Final = (1 << 63) - 1  # arbitrary: what a C long of the compiled modules holds
DIGITS: Final = "0123456789abcdef"


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
        base, steps = bool, [BeforeValidator(_truth)]
    elif parameter.type == "double":
        base, steps = float, [Field(allow_inf_nan=False), *_bounds(parameter)]
    elif parameter.type == "string":
        base, steps = str, [BeforeValidator(_expand_home)]
    else:
        base, steps = int, [BeforeValidator(_integer_reader(parameter)), *_bounds(parameter)]
    if parameter.choices is not None:
        steps.append(AfterValidator(_chooser(parameter)))
    annotated: Any = Annotated[(base, *steps)]
    return TypeAdapter(annotated)


def _bounds(parameter: Parameter) -> list[Any]:
    least, largest = parameter.minimum, parameter.maximum
    if parameter.type != "double":
        floor = 0 if parameter.type == "size_t" else -LARGEST - 1
        least = floor if least is None else least
        largest = LARGEST if largest is None else largest
    return [Field(ge=least, le=largest)]


def _integer_reader(parameter: Parameter) -> Callable[[str], int]:
    words = parameter.words or {}

    def read(raw: str) -> int:
        if raw in words:
            return words[raw]
        try:
            value = integer(raw)
        except ValueError as error:
            if not words:
                raise
            raise ValueError(f"{error}, and not one of {', '.join(words)}") from None
        if parameter.clamp:
            value = value if parameter.minimum is None else max(value, int(parameter.minimum))
            value = value if parameter.maximum is None else min(value, int(parameter.maximum))
        return value

    return read


def integer(raw: str) -> int:
    """A whole number: decimal, 0x hexadecimal or 0 octal, then an optional k, m or g.

    Raises:
        ValueError: it is none.
    """
    text = raw.strip().lower()
    factor = FACTORS.get(text[-1:], 1)
    digits = text[:-1] if factor > 1 else text
    negative = digits.startswith("-")
    digits = digits[1:] if digits.startswith(("-", "+")) else digits
    base = 10
    if digits.startswith("0x"):
        base, digits = 16, digits[2:]
    elif digits.startswith("0") and len(digits) > 1:
        base, digits = 8, digits[1:]
    if not digits or not set(digits) <= set(DIGITS[:base]):
        raise ValueError(
            "not a whole number (decimal, 0x hexadecimal or 0 octal, with k, m or g for "
            "1024, 1024^2 or 1024^3)"
        )
    value = int(digits, base) * factor
    return -value if negative else value


def _truth(raw: str) -> bool:
    word = raw.strip().lower()
    if word in TRUE or word in FALSE:
        return word in TRUE
    try:
        return int(word) != 0
    except ValueError:
        raise ValueError("not true or false (also yes and no, or a number)") from None


def _expand_home(raw: str) -> str:
    """Put the home directory for a leading `~/` and every `:~/` (reference openmpi.md 1.8.5)."""
    home = os.path.expanduser("~/")
    text = home + raw[2:] if raw.startswith("~/") else raw
    return text.replace(":~/", f":{home}")


def _chooser(parameter: Parameter) -> Callable[[object], object]:
    choices = parameter.choices or {}

    def choose(value: object) -> object:
        if parameter.text(value) not in choices:
            raise ValueError(f"not one of {', '.join(choices)}")
        return value

    return choose
