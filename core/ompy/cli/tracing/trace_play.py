"""`ompy trace --play`: a page for a browser, of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from ompy import outputs
from ompy.cli.tracing.trace_exports import unwritable
from ompy.trace.message_events import Message
from ompy.trace.operations import Operation
from ompy.trace.playing.playback import playback
from ompy.trace.playing.player_page import player_page
from ompy.trace.trace_files import JobTrace

SUFFIXES: Final = (".html", ".htm")


def export_page(
    path: str,
    found: JobTrace,
    chosen: Sequence[Message] | None,
    operations: Sequence[Operation] | None,
) -> None:
    """Write the page, and say what is on it and what is not.

    Args:
        path: of the page.
        found: a trace.
        chosen: the messages to show.
        operations: of GASNet, to show; where both are None, all there is room for.

    Raises:
        click.ClickException: there is nothing to play, or it cannot be written.
    """
    told = playback(found, chosen, operations)
    if not told["steps"]:
        raise click.ClickException(
            "--play: there is nothing to play: the trace has no messages, receives or calls "
            "of MPI, and no operations of GASNet"
        )
    try:
        outputs.write_text(path, player_page(told))
    except (OSError, ValueError) as problem:
        raise unwritable("--play", path, problem) from None
    counts = f"{len(told['ranks'])} ranks, {told['counts']}, {len(told['steps'])} steps"
    click.echo(f"{path}: {counts}; open it in a browser")
    for sentence in told["left_out"]:
        click.echo(f"  left out: {sentence}")
