"""Completion of `ompy-run`'s words: it takes its options in its own way, so click's does not do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import click
from click.shell_completion import CompletionItem

from ompy.cli.completing.completion import FILE, WORDS, Items
from ompy.cli.completing.completion_scripts import SHELLS
from ompy.cli.launch.command_line import PROGRAM, SEPARATOR, CommandError
from ompy.cli.options import arities, command, usual_spelling


def answer_completion(variable: str) -> int:
    """Do what one of the completion scripts asks for. Returns the exit code.

    Args:
        variable: of the environment, where the script says what it asks for.
    """
    shell, _, instruction = os.environ[variable].partition("_")
    if shell not in SHELLS or instruction not in ("source", "complete"):
        return 1
    base = SHELLS[shell]

    class RunCompletion(base):  # type: ignore[valid-type, misc]
        """As for any command of click's, but for the words."""

        def get_completions(self, args: list[str], incomplete: str) -> Items:
            """What the last word may become."""
            return completions(args, incomplete)

    made = RunCompletion(command, {}, PROGRAM, variable)
    click.echo(made.source() if instruction == "source" else made.complete())
    return 0


def completions(words: Sequence[str], incomplete: str) -> Items:
    """What a word of `ompy-run`'s command line may become.

    Args:
        words: those before it, without the command itself.
        incomplete: as much of it as there is.
    """
    words = [word for word in words if word != "="]  # where bash has `--tune=a` in three parts
    incomplete = "" if incomplete == "=" else incomplete
    while SEPARATOR in words:  # what counts is the last program
        del words[: words.index(SEPARATOR) + 1]
    context = click.Context(command, info_name=PROGRAM, resilient_parsing=True)
    name, equals, value = incomplete.partition("=")
    joined = bool(equals) and name.startswith("--")
    option, given, rest = _take([*words, name] if joined else words, context)
    if option is not None:
        context.meta[WORDS] = (option.opts[0], *given)
        items = option.shell_complete(context, value if joined else incomplete)
        return [_behind(f"{name}=", item) for item in items] if joined else items
    if rest:
        return [CompletionItem(incomplete, type=FILE)]
    if incomplete.startswith("-"):
        return command.shell_complete(context, incomplete)
    return list(_programs(incomplete))


def _behind(start: str, item: CompletionItem[str]) -> CompletionItem[str]:
    return CompletionItem(start + item.value, type=item.type, help=item.help)


def _take(
    words: Sequence[str], context: click.Context
) -> tuple[click.Option | None, Sequence[str], Sequence[str]]:
    """The option that still wants arguments, those it has, and the words from the program on."""
    known = arities()
    position = 0
    while position < len(words) and words[position].startswith("-") and words[position] != "-":
        token = words[position]
        position += 1
        if token == "--":  # noqa: S105 - no password
            return None, (), words[position:]
        written, equals, value = token.partition("=")
        try:
            name = usual_spelling(written, known)
        except CommandError:
            continue  # an option there is not, or -n4
        given = [value] if equals else []
        taken = known[name] - len(given)
        given += words[position : position + taken]
        if len(given) < known[name]:
            options = [o for o in command.get_params(context) if isinstance(o, click.Option)]
            return next(o for o in options if name in o.opts), given, ()
        position += taken
    return None, (), words[position:]


def _programs(incomplete: str) -> Iterator[CompletionItem[str]]:
    """Commands of the path that begin so, and files."""
    if not incomplete or "/" in incomplete:
        yield CompletionItem(incomplete, type=FILE)
        return
    found: set[str] = set()
    for directory in [".", *os.environ.get("PATH", "").split(os.pathsep)]:
        try:
            names = os.listdir(directory or ".")
        except OSError:
            continue
        found.update(
            name
            for name in names
            if name.startswith(incomplete)
            and (directory == "." or os.access(os.path.join(directory, name), os.X_OK))
        )
    for name in sorted(found):
        yield CompletionItem(name)
