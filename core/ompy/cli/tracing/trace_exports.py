"""What `ompy trace` writes for other tools: OTF2 archives, packets, a dissector of them."""

from __future__ import annotations

import click

from ompy import outputs
from ompy.cli.terminal import one_line
from ompy.trace.trace_files import JobTrace


def export_otf2(path: str, found: JobTrace) -> None:
    """Write an archive and say so.

    Raises:
        click.ClickException: it cannot be written.
    """
    from ompy.trace.exporting.otf2_archive import ANCHOR, LibraryError, write_archive

    try:
        count = write_archive(path, found)
    except LibraryError as problem:
        raise click.ClickException(f"--otf2 {one_line(path)}: {problem}") from None
    except (OSError, ValueError) as problem:
        raise unwritable("--otf2", path, problem) from None
    click.echo(f"{path}: {count} events; open {ANCHOR} in it with Vampir, Traveler or otf2-print")


def export_pcapng(path: str, found: JobTrace) -> None:
    """Write the packets and say so.

    Raises:
        click.ClickException: there are none, or they cannot be written.
    """
    from ompy.trace.exporting.pcapng import pcapng

    if not found.wire:
        raise click.ClickException(
            "--pcapng: the trace has no packets. They are kept with --mca trace_base_wire BYTES, "
            "of what goes over sockets: not of shared memory, nor of a real libfabric"
        )
    data, count = pcapng(found)
    try:
        outputs.write_bytes(path, data)
    except (OSError, ValueError) as problem:
        raise unwritable("--pcapng", path, problem) from None
    click.echo(f"{path}: {count} packets; open it with Wireshark, beside --dissector")


def export_dissector(path: str) -> None:
    """Write the dissector and say so.

    Raises:
        click.ClickException: it cannot be written.
    """
    from ompy.cli.tracing.dissector import dissector

    text, problems = dissector()
    for problem in problems:
        outputs.tell(f"ompy: {one_line(problem)}\n")
    try:
        outputs.write_text(path, text)
    except (OSError, ValueError) as problem:
        raise unwritable("--dissector", path, problem) from None
    click.echo(f"{path}: tshark -X lua_script:{path} -r FILE, or a plugin of Wireshark")


def unwritable(option: str, path: str, problem: Exception) -> click.ClickException:
    """Why a file or folder that was asked for is not there."""
    why = getattr(problem, "strerror", None) or problem
    return click.ClickException(f"{option} {one_line(path)}: it cannot be written: {why}")
