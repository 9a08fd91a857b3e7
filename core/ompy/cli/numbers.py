"""Numbers of a command line. What is none is refused in words that say which would do."""

from __future__ import annotations

from typing import Any

import click


class WholeNumber(click.IntRange):
    """A whole number between limits."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click's, with limits in every refusal."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is no whole number{limits(self)}", param, ctx)


class Number(click.FloatRange):
    """A number between limits."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click's, with limits in every refusal."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is no number{limits(self)}", param, ctx)


def limits(kind: click.IntRange | click.FloatRange) -> str:
    """Between which limits a number has to be, as words that follow the noun."""
    if kind.min is None:
        return "" if kind.max is None else f" up to {kind.max:g}"
    if kind.min_open:
        return f" above {kind.min:g}" + ("" if kind.max is None else f", up to {kind.max}")
    return f" from {kind.min} " + ("on" if kind.max is None else f"to {kind.max}")
