"""`mpiexec` and `mpirun` by ompy, for programs and plug-ins that start those: opt-in.

`ompy mpiexec --link DIR` puts both names into a directory, to stand first in PATH; nothing is
installed under them, as another MPI may have its own. They run `python -m ompy.cli.mpiexec`.
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


@click.command()
@click.option(
    "--link",
    required=True,
    metavar="DIR",
    type=GivenPath(path_type=Path, file_okay=False),
    help="Put mpiexec and mpirun there, which start jobs by ompy-run; put DIR into PATH.",
)
def mpiexec(link: Path) -> None:
    """Have mpiexec and mpirun start jobs by ompy-run: docs/mpiexec.md has their options."""
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
