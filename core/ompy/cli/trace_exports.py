"""What `ompy trace` writes for other tools: OTF2 archives."""

from __future__ import annotations

import click

from ompy.cli.terminal import one_line
from ompy.trace.otf2_archive import ANCHOR, LibraryError, write_archive
from ompy.trace.trace_files import JobTrace


def export_otf2(path: str, found: JobTrace) -> None:
    """Write an archive and say so.

    Raises:
        click.ClickException: it cannot be written.
    """
    try:
        count = write_archive(path, found)
    except LibraryError as problem:
        raise click.ClickException(f"--otf2 {one_line(path)}: {problem}") from None
    except (OSError, ValueError) as problem:
        raise unwritable("--otf2", path, problem) from None
    click.echo(f"{path}: {count} events; open {ANCHOR} in it with Vampir, Traveler or otf2-print")


def unwritable(option: str, path: str, problem: Exception) -> click.ClickException:
    """Why a file or folder that was asked for is not there."""
    why = getattr(problem, "strerror", None) or problem
    return click.ClickException(f"{option} {one_line(path)}: it cannot be written: {why}")
