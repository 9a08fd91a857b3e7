"""`ompy new`: the command line."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path
from typing import Final, NoReturn

import click

from ompy.cli.given_words import GivenPath
from ompy.cli.refusing import tell_error
from ompy.mca.errors import did_you_mean

USAGE: Final = 2  # exit code, as click has it
NAME: Final = r"[a-z][a-z0-9_]*"


def _kinds(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """For a shell's completion."""
    from ompy.cli.new.kinds import KINDS

    return [kind for kind in KINDS if kind.startswith(begun)]


@click.command("new")
@click.argument("kind", shell_complete=_kinds)
@click.argument("name")
@click.option(
    "--into",
    type=GivenPath(path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="Make the new folder in this one instead of the present one.",
)
def new(kind: str, name: str, into: Path) -> None:
    """Write a small distribution with a component NAME that works, for you to complete.

    KIND is btl, coll, hook, nic, osc or pml. The folder ompy-KIND-NAME gets a pyproject.toml with
    the entry point, a module with the component, a test file that runs the conformance kit, and a
    README that says what comes next. Ends with 2 when that cannot be done; then nothing is written.
    """
    from ompy.cli.new.distribution import distribution_name, words_for, write_distribution
    from ompy.cli.new.kinds import KINDS

    if kind not in KINDS:
        _end(f"there is no kind {kind!r}{did_you_mean(kind, KINDS)} (there are {', '.join(KINDS)})")
    chosen = KINDS[kind]
    _check_name(chosen.framework, name)
    try:
        written = write_distribution(chosen, name, into)
    except FileExistsError as problem:
        _end(f"{problem}: choose another name, or move it away")
    except OSError as problem:
        _end(f"nothing can be written in {into}: {problem.strerror or problem}")
    folder = into / distribution_name(chosen, name)
    click.echo(f"{folder} has {', '.join(written)}")
    click.echo("\nnext:")
    words = words_for(chosen, name)
    for line in (
        f"cd {folder}",
        "pip install -e '.[test]'",
        f"ompy-info --why {words['why']}",
        words["judge"],
        words["use"],
    ):
        click.echo(f"    {line}")


def _check_name(framework: str, name: str) -> None:
    """End the program where a component cannot be called so."""
    if not re.fullmatch(NAME, name) or keyword.iskeyword(name):
        _end(
            f"{name!r} is no name for a component: small letters, digits and _, a letter first, "
            "and no keyword of Python"
        )
    if name == "base":
        _end("'base' is no name for a component: it stands for the framework in parameters")
    from ompy.frameworks.catalog import CATALOG
    from ompy.mca.groups import HOOKS
    from ompy.mca.plugins.discovery import scan_entry_points

    known = frozenset(info.name for info in (*CATALOG, HOOKS))
    for record in scan_entry_points(known):
        if record.framework == framework and name in (record.name, *record.aliases):
            _end(f"{record.offered_by} has {framework} {name} already: choose another name")


def _end(text: str) -> NoReturn:
    tell_error("ompy new", text)
    sys.exit(USAGE)
