"""Reference: every command and option, from click."""

from __future__ import annotations

from collections.abc import Iterator

import click

from tools.site.markdown import block, cell, table, toctree


def pages() -> dict[str, str]:
    """A page for each command, and a list of them."""
    made = {}
    names = []
    for path, command in commands():
        name = "-".join(path)
        names.append(name)
        made[f"commands/{name}.md"] = page(path, command)
    head = (
        "# Commands\n\nEach page is made from the command itself, so it is what `--help` says.\n\n"
    )
    made["commands/index.md"] = head + toctree(names)
    return made


def commands() -> Iterator[tuple[list[str], click.Command]]:
    """All commands that people type, each with the words that name it."""
    from ompy.cli.info.command import command as info
    from ompy.cli.main import main as tools
    from ompy.cli.options import command as run

    yield ["ompy-run"], run
    yield ["ompy-info"], info
    yield from _below(["ompy"], tools)


def _below(path: list[str], command: click.Command) -> Iterator[tuple[list[str], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from _below([*path, name], command.commands[name])


def page(path: list[str], command: click.Command) -> str:
    """One command: usage, what it does, its options."""
    title = " ".join(path)
    context = click.Context(command, info_name=title)
    usage = command.get_usage(context).removeprefix("Usage: ")
    parts = [f"# {title}\n", block(usage), _paragraphs(command.help)]
    options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    rows = [_row(option, context) for option in options if not option.hidden]
    if rows:
        parts += ["## Options\n", table(["option", "what it does"], rows)]
    if isinstance(command, click.Group):
        subcommands = (
            [
                f"[`{title} {name}`]({'-'.join([*path, name])}.md)",
                cell(each.get_short_help_str(200)),
            ]
            for name, each in sorted(command.commands.items())
        )
        parts += ["## Commands\n", table(["command", "what it does"], subcommands)]
    parts.append(_paragraphs(command.epilog))
    return "\n".join(part for part in parts if part)


def _row(option: click.Option, context: click.Context) -> list[str]:
    record = option.get_help_record(context)
    assert record
    name, about = record
    return [f"`{cell(name).replace('&lt;', '<')}`", cell(about)]


def _paragraphs(text: str | None) -> str:
    """Help as click wraps it: paragraphs, and blocks behind a mark that keep their lines."""
    made = []
    for paragraph in (text or "").split("\n\n"):
        if paragraph.strip("\n").startswith("\b"):
            made.append(block(paragraph.strip("\n").removeprefix("\b").strip("\n")))
        else:
            made.append(cell(paragraph))
    return "\n\n".join(made) + "\n" if text else ""
