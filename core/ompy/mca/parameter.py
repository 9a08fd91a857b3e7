"""How a component declares an MCA parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

TYPES: Final = frozenset({"int", "size_t", "bool", "string", "double"})
LEVELS: Final = {
    1: "user/basic",
    2: "user/detail",
    3: "user/all",
    4: "tuner/basic",
    5: "tuner/detail",
    6: "tuner/all",
    7: "dev/basic",
    8: "dev/detail",
    9: "dev/all",
}  # reference openmpi.md 1.6
BASE: Final = "base"  # reference openmpi.md 1.1: in place of a component, the framework itself
VERBOSITY: Final = {
    "none": -1,
    "error": 0,
    "component": 10,
    "warn": 20,
    "info": 40,
    "trace": 60,
    "debug": 80,
    "max": 100,
}  # reference openmpi.md 1.6.5


class Parameter:
    """One parameter of a component or framework.

    Attributes:
        name: without framework and component, as `eager_limit`.
        type: one of `TYPES`.
        default: value when nobody sets it; it is valid, a test asks.
        help: what it does, a sentence for the user.
        level: 1 to 9, who it is for.
        unit: of the value (`bytes`, `us`, `ranks`, ...); empty for words and switches.
        choices: the words allowed, with what each means; None for any.
        minimum: least value of a number, or None.
        maximum: largest value of a number, or None.
        words: words that may be given for numbers (`int` and `size_t`), or None.
        clamp: a number out of range is moved to the bound instead of being an error.
    """

    __slots__ = (
        "choices",
        "clamp",
        "default",
        "help",
        "level",
        "maximum",
        "minimum",
        "name",
        "type",
        "unit",
        "words",
    )

    def __init__(
        self,
        name: str,
        type: str,  # noqa: A002 - the word Open MPI's users know
        default: object,
        help: str,  # noqa: A002
        *,
        level: int,
        unit: str = "",
        choices: Mapping[str, str] | None = None,
        minimum: float | None = None,
        maximum: float | None = None,
        words: Mapping[str, int] | None = None,
        clamp: bool = False,
    ) -> None:
        assert type in TYPES, f"{name}: no parameter type {type}"
        assert level in LEVELS, f"{name}: no level {level}"
        assert help, f"{name}: a parameter has help"
        self.name = name
        self.type = type
        self.default = default
        self.help = help
        self.level = level
        self.unit = unit
        self.choices = choices
        self.minimum = minimum
        self.maximum = maximum
        self.words = words
        self.clamp = clamp

    def text(self, value: object) -> str:
        """A value of this parameter as the user would write it."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if self.words:
            for word, number in self.words.items():
                if number == value:
                    return word
        return str(value)


class Values:
    """Resolved values of one component's parameters, as attributes.

    `values.eager_limit` is the value of `<framework>_<component>_eager_limit`.
    """

    def __init__(self, values: Mapping[str, object]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no parameter {name} was declared; there are {sorted(self.__dict__)}")
