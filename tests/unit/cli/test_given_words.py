"""No option of any command takes an empty word for an answer."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from ompy.cli.given_words import WHY, takes_one_text
from ompy.cli.info.command import command as info
from ompy.cli.launch.command_line import CommandError, parse_command_line
from ompy.cli.main import main
from ompy.cli.options import command as run

OF_FILES = ("FILE", "DIR")  # in a metavar: the option takes a path


def commands(of: click.Command) -> Iterator[click.Command]:
    yield of
    if isinstance(of, click.Group):
        for each in of.commands.values():
            yield from commands(each)


EVERY = [
    (command, option)
    for top in (main, run, info)
    for command in commands(top)
    for option in command.params
    if isinstance(option, click.Option) and option.nargs == 1
]
ASKED = [(command, option) for command, option in EVERY if takes_one_text(option)]


@pytest.mark.parametrize(
    ("command", "option"), ASKED, ids=lambda of: getattr(of, "name", None) or str(of)
)
def test_an_empty_word_is_refused(command: click.Command, option: click.Option) -> None:
    with pytest.raises(click.UsageError) as caught:
        command.make_context("command", [option.opts[0], ""])
    existing = isinstance(option.type, click.Path) and option.type.exists
    assert existing or WHY in caught.value.format_message()
    assert option.opts[0] in caught.value.format_message()


def test_whatever_takes_a_path_is_among_them() -> None:
    paths = [
        option
        for _, option in EVERY
        if any(word in (option.metavar or "") for word in OF_FILES) and not option.is_flag
    ]
    assert len(paths) > 25
    asked = [option for _, option in ASKED]
    assert [option.opts for option in paths if option not in asked] == []


@pytest.mark.parametrize("words", [["--record", ""], ["--record="], ["--wdir", ""], ["-x", ""]])
def test_the_launcher_refuses_it_too(words: list[str]) -> None:
    with pytest.raises(CommandError, match=WHY):
        parse_command_line(["-n", "2", *words, "python", "program.py"])
