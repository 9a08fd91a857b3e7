"""`mpiexec` and `mpirun` by ompy, for programs and plug-ins that start those: opt-in.

`ompy mpiexec --link DIR` puts both names into a directory, to stand first in PATH; nothing is
installed under them, as another MPI may have its own. They run `python -m ompy.cli.mpiexec`.
`ompy mpiexec -n 2 python app.py` runs one launch line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from ompy import outputs
from ompy.cli.given_words import GivenPath

NAMES: Final = ("mpiexec", "mpirun")
MARK: Final = "# made by: ompy mpiexec --link"
SCRIPT: Final = """#!/bin/sh
{mark}
exec {python} -m ompy.cli.mpiexec "$@"
"""


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--link",
    metavar="DIR",
    type=GivenPath(path_type=Path, file_okay=False),
    help="Put mpiexec and mpirun there, which start jobs by ompy-run; put DIR into PATH.",
)
@click.argument("line", nargs=-1, type=click.UNPROCESSED, metavar="[LAUNCH LINE]")
def mpiexec(link: Path | None, line: tuple[str, ...]) -> None:
    """Run a launch line of another MPI, or make mpiexec and mpirun that do.

    docs/mpiexec.md has the options of a launch line.
    """
    if link is None:
        if not line:
            raise click.UsageError("write a launch line, as -n 2 python app.py, or --link DIR")
        sys.exit(main(line))
    if line:
        raise click.UsageError("--link DIR makes commands, and takes no launch line")
    make_commands(link)


def make_commands(link: Path) -> None:
    """Put mpiexec and mpirun into a directory."""
    from shlex import quote

    link.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        path = link / name
        if path.is_symlink() or (path.exists() and MARK not in path.read_text(errors="replace")):
            raise click.ClickException(f"{path} is there, and not ours: choose another directory")
    for name in NAMES:
        path = link / name
        path.write_text(SCRIPT.format(mark=MARK, python=quote(sys.executable)))
        path.chmod(0o755)
    click.echo(f"{link}: {' and '.join(NAMES)}, by {sys.executable}")


def main(arguments: Sequence[str] | None = None) -> int:
    """What the scripts run: a launch line of any MPI. Returns the exit code."""
    from ompy.cli.launch.foreign_options import translate_line
    from ompy.cli.run import main as run

    made = translate_line(sys.argv[1:] if arguments is None else arguments)
    for note in made.notes:
        outputs.tell(f"{os.path.basename(sys.argv[0])}: {note}\n", "warning", "warning")
    sys.argv[1:] = made.words
    return run()


if __name__ == "__main__":
    sys.argv[0] = NAMES[0]
    sys.exit(main())
