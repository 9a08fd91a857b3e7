"""`ompy trace`: a traced job as a time line, as a sequence diagram or as text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click

from ompy import outputs
from ompy.cli import trace_gasnet
from ompy.cli.terminal import one_line
from ompy.trace.amounts import byte_count
from ompy.trace.chrome import chrome
from ompy.trace.diagram import MOST_MESSAGES, Diagram
from ompy.trace.files import JobTrace, TraceError, read_trace
from ompy.trace.mermaid import mermaid
from ompy.trace.messages import Message, messages
from ompy.trace.operations import Operations, operations
from ompy.trace.sequence import arrange
from ompy.trace.svg import svg

DRAWINGS: dict[str, Callable[[Diagram], str]] = {".svg": svg, ".mmd": mermaid}


@click.command()
@click.argument("directory", metavar="DIR")
@click.option("--chrome", "chrome_file", metavar="FILE", help="Write JSON for ui.perfetto.dev.")
@click.option(
    "--sequence", "sequence_file", metavar="FILE", help="Draw messages: FILE.svg or FILE.mmd."
)
@click.option("--text", is_flag=True, help="Print every event on a line.")
@click.option("--rank", type=int, metavar="A", help="Only messages rank A sent, or received.")
@click.option("--peer", type=int, metavar="B", help="Only messages between A and B.")
@click.option("--tag", type=int, metavar="T", help="Only messages with this tag.")
@click.option("--gasnet", is_flag=True, help="GASNet's operations, not MPI's messages.")
@click.option("--handler", metavar="H", help="Only active messages for it: its name or index.")
@click.option("--message", type=int, metavar="N", help="Only the Nth of those, from 1 on.")
def trace(
    directory: str,
    chrome_file: str | None,
    sequence_file: str | None,
    text: bool,
    rank: int | None,
    peer: int | None,
    tag: int | None,
    gasnet: bool,
    handler: str | None,
    message: int | None,
) -> None:
    """Show what happened in a job that `ompy-run --trace DIR` ran.

    Without an option it lists the messages. Those of collectives have negative tags, and are left
    out unless --tag asks for them. Of a job that used GASNet it lists active messages, puts and
    gets; the messages of barriers and memset are left out unless --handler asks for them.
    """
    wanted = Wanted(rank, peer, tag, message, handler, gasnet)
    _check(wanted, sequence_file)
    try:
        found = read_trace(directory)
    except TraceError as problem:
        raise click.ClickException(one_line(str(problem))) from None
    _warn(found)
    if chrome_file:
        _write(chrome_file, chrome(found), "--chrome")
        click.echo(f"{chrome_file}: {len(found.events)} events; open it at ui.perfetto.dev")
    if text:
        click.echo("\n".join(event.line() for event in found.events))
    if sequence_file or not (chrome_file or text):
        _show(found, wanted, sequence_file)


class Wanted(NamedTuple):
    """Which messages or operations, as the options of these names say."""

    rank: int | None = None
    peer: int | None = None
    tag: int | None = None
    message: int | None = None
    handler: str | None = None
    gasnet: bool = False


def _check(wanted: Wanted, sequence_file: str | None) -> None:
    if wanted.tag is not None and (wanted.gasnet or wanted.handler is not None):
        raise click.UsageError("--tag is of MPI's messages; --gasnet and --handler are of GASNet's")
    if wanted.peer is not None and wanted.rank is None:
        raise click.UsageError("--peer says with whom; --rank A is needed beside it")
    if sequence_file and Path(sequence_file).suffix not in DRAWINGS:
        raise click.UsageError(f"--sequence {sequence_file}: a name in .svg or .mmd is needed")


def _show(found: JobTrace, wanted: Wanted, sequence_file: str | None) -> None:
    """List messages or operations, or draw them. Both are listed where both are meant."""
    every, known = messages(found.events), operations(found.events)
    plain = wanted.tag is not None or any(message.tag >= 0 for message in every)
    only = wanted.gasnet or wanted.handler is not None or (not plain and bool(known.all))
    if not only:
        chosen = choose_messages(every, *wanted[:4])
        if sequence_file:
            _draw(sequence_file, found, [message for _, message in chosen])
            return
        click.echo(listing(chosen))
    if only or (known.all and wanted.tag is None and wanted.message is None):
        _show_operations(found, known, wanted, sequence_file)


def _show_operations(
    found: JobTrace, known: Operations, wanted: Wanted, sequence_file: str | None
) -> None:
    rank, peer, _, number, handler, _ = wanted
    chosen = trace_gasnet.choose_operations(known, rank, peer, handler, number)
    if sequence_file:
        diagram = trace_gasnet.draw(found, known, chosen)
        _write(sequence_file, DRAWINGS[Path(sequence_file).suffix](diagram), "--sequence")
        click.echo(f"{sequence_file}: {len(chosen)} operation(s)")
    else:
        click.echo(trace_gasnet.listing(chosen, known))


def choose_messages(
    every: list[Message], rank: int | None, peer: int | None, tag: int | None, number: int | None
) -> list[tuple[int, Message]]:
    """The messages the options name, numbered as `--message` counts them.

    Raises:
        click.ClickException: there is none.
    """
    ranks = {rank, peer} - {None}
    found = [
        message
        for message in every
        if ranks <= {message.sender, message.receiver}
        and (peer != rank or peer is None or message.sender == message.receiver)
        and (message.tag >= 0 if tag is None else message.tag == tag)
    ]
    numbered = list(enumerate(found, 1))
    if number is not None:
        numbered = numbered[number - 1 : number] if number > 0 else []
    if not numbered:
        tags = sorted({message.tag for message in every}, key=lambda tag: (tag < 0, tag))
        raise click.ClickException(
            f"no such message: {len(found)} of {len(every)} fit the options; "
            f"tags there are (negative ones are of collectives): "
            f"{', '.join(map(str, tags[:20])) or 'none'}"
        )
    return numbered


def listing(chosen: list[tuple[int, Message]]) -> str:
    """A table of messages."""
    rows = [f"{'':>5} {'us':>12}  {'from':>4} {'to':>4} {'tag':>6} {'size':>10}  protocol"]
    for number, message in chosen:
        protocol = message.protocol or "?"
        if message.decided and message.decided != message.protocol:
            protocol += f", became {message.decided}"
        rows.append(
            f"{number:>5} {message.start_time / 1000:>12.3f}  {message.sender:>4} "
            f"{message.receiver:>4} {message.tag:>6} {byte_count(message.size):>10}  {protocol}"
        )
    return "\n".join(rows)


def _draw(path: str, trace: JobTrace, chosen: list[Message]) -> None:
    if len(chosen) > MOST_MESSAGES:
        raise click.ClickException(
            f"{len(chosen)} messages fit, {MOST_MESSAGES} at most can be drawn: choose with "
            "--rank, --peer, --tag and --message; without --sequence they are listed"
        )
    diagram = arrange(chosen, trace.headers)
    _write(path, DRAWINGS[Path(path).suffix](diagram), "--sequence")
    click.echo(f"{path}: {len(chosen)} message(s)")


def _write(path: str, text: str, option: str) -> None:
    try:
        outputs.write_text(path, text)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise click.ClickException(
            f"{option} {one_line(path)}: it cannot be written: {why}"
        ) from None


def _warn(trace: JobTrace) -> None:
    for sentence in trace.damage:
        outputs.tell(f"ompy: {one_line(sentence)}\n")
    for rank, end in sorted(trace.ends.items()):
        if end.dropped:
            text = f"rank {rank} left out {end.dropped} events: raise trace_base_limit"
            outputs.tell(f"ompy: {text}\n")
        if end.reason != "finalize":
            outputs.tell(f"ompy: the events of rank {rank} end early: {one_line(end.reason)}\n")
    code = trace.job.get("exit_code", 0)
    if code and isinstance(code, int):
        outputs.tell(f"ompy: the job ended with exit code {code}\n")
