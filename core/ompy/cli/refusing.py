"""How every command says that it refuses: `ompy trace: error: WHY`, and where its options stand."""

from __future__ import annotations

from typing import Any, Final

import click

from ompy import outputs
from ompy.mca.errors import UsageError

# of a command without words, which is shown its help; click has it since 8.2
HELP: Final[Any] = getattr(click.exceptions, "NoArgsIsHelpError", ())


class Refused(click.ClickException):
    """What was asked for cannot be done as it was asked."""

    exit_code = UsageError.exit_code


def tell_error(program: str, text: str, advice: str = "") -> None:
    """Say it on standard error.

    Args:
        program: who refuses, as `ompy trace`.
        text: what is wrong, and what to do.
        advice: a line of its own.
    """
    lines = f"{program}: error: {text}\n" + (f"{advice}\n" if advice else "")
    outputs.tell(lines, "error", "error")


def tell_refusal(problem: click.ClickException, program: str) -> None:
    """Say what click, or a command, has found.

    Args:
        problem: what was found.
        program: who refuses, if `problem` does not know.
    """
    if isinstance(problem, HELP):
        problem.show()
        return
    context = problem.ctx if isinstance(problem, click.UsageError) else None
    if context is None:
        tell_error(program, problem.format_message())
    else:
        path = context.command_path
        tell_error(path, problem.format_message(), f"Try '{path} --help'.")
