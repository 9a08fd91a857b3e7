"""Words of a command line that have to say something: an empty one is a mistake, not a `none`.

Who writes `--record "$DIR"` where DIR is not set would otherwise learn at the end of a long job
that nothing was recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

WHY: Final = "it is empty; leave it out, or say which"
Callback = Callable[[click.Context, click.Parameter, Any], Any]


class GivenPath(click.Path):
    """A path that is not empty. What is made of an empty one by click is the working directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click's."""
        if value == "":
            self.fail(WHY, param, ctx)
        return super().convert(value, param, ctx)


def takes_one_text(parameter: click.Parameter) -> bool:
    """Whether an option or argument is a word of the user's, such as a name or a path."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return False
    return parameter.nargs == 1 and isinstance(
        parameter.type, click.types.StringParamType | click.Path
    )


def refuse_empty_words(command: click.Command) -> None:
    """Have a command refuse each empty word where a text is asked for.

    Args:
        command: or a group, with all its commands.
    """
    if isinstance(command, click.Group):
        for each in command.commands.values():
            refuse_empty_words(each)
    for parameter in command.params:
        if takes_one_text(parameter):
            parameter.callback = _refusing(parameter.callback)


def _refusing(callback: Callback | None) -> Callback:
    """A callback that looks at what was given before another one does."""

    def look(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        given = context.get_parameter_source(parameter.name or "")
        words = value if isinstance(value, tuple) else (value,)
        if "" in words and given is click.core.ParameterSource.COMMANDLINE:
            raise click.BadParameter(WHY, context, parameter)
        return value if callback is None else callback(context, parameter, value)

    return look
