"""A command line that a page names has only options that the command has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from ompy.cli.launch.command_line import CommandError
from ompy.cli.options import arities, usual_spelling

from tests.meta.test_documents import ROOT, pages
from tools.site.command_pages import commands

KNOWN = {" ".join(path): command for path, command in commands()}
CODE = re.compile(r"`([^`\n]+)`|^    (?:\$ )?(.+)$|^\$ (.+)$", re.MULTILINE)
LINE = re.compile(r"\b(ompy-run|ompy-info|ompy(?: [a-z0-9]+)+)((?: [^|;&<>]*)?)")
# its options are another's: of the program, of pytest, of other MPIs
OTHERS = ("ompy mpiexec",)
PROGRAM = re.compile(r"\s(?:python[\d.]*|PROGRAM|\S+\.py|true|sh|:)(?:\s|$)")


def command_lines(text: str) -> Iterator[tuple[str, str]]:
    """Commands of ours in the code of a page, and what follows the name of each."""
    for found in CODE.finditer(text):
        for line in LINE.finditer(next(filter(None, found.groups()))):
            words = line[1].split()
            while words and " ".join(words) not in KNOWN:
                words.pop()
            name = " ".join(words)
            if name and name not in OTHERS:
                yield name, line[1].removeprefix(name) + line[2]


def options(name: str, rest: str) -> list[str]:
    """Those of the command in the words that follow its name."""
    ends = PROGRAM.search(f"{rest} ")
    own = rest[: ends.start()] if ends and name == "ompy-run" else rest
    return re.findall(r"(?<=\s)--?[a-zA-Z][\w-]*", re.sub(r"'[^']*'|\"[^\"]*\"", "", own))


def has_option(name: str, option: str) -> bool:
    if name == "ompy-run":
        try:
            usual_spelling(option, arities())
        except CommandError:
            return False
        return True
    command = KNOWN[name]
    context = click.Context(command)
    return any(option in each.opts + each.secondary_opts for each in command.get_params(context))


def unknown(page: Path) -> list[str]:
    """Options of a page that its commands do not have."""
    found = command_lines(page.read_text())
    return [
        f"{name} {option}"
        for name, rest in found
        for option in options(name, rest)
        if not has_option(name, option)
    ]


def test_commands_are_found() -> None:
    found = [line for page in pages() for line in command_lines(page.read_text())]
    assert len(found) > 300
    assert {name for name, _ in found} > {"ompy-run", "ompy-info", "ompy sim", "ompy trace"}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_an_option_is_the_commands(page: Path) -> None:
    assert unknown(page) == []


def test_an_option_that_is_not_there_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "`ompy-run -n 2 --bynode python a.py --own` `ompy sim --sed 3`\n\n    $ ompy ps --json\n"
    )
    assert unknown(page) == ["ompy-run --bynode", "ompy sim --sed"]
