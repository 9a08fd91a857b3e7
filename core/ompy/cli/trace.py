"""`ompy trace`: a traced job as a time line, as a sequence diagram or as text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from ompy import outputs
from ompy.cli.terminal import one_line
from ompy.trace.amounts import byte_count
from ompy.trace.chrome import chrome
from ompy.trace.files import JobTrace, TraceError, read
from ompy.trace.mermaid import mermaid
from ompy.trace.messages import Message, messages
from ompy.trace.sequence import MOST_MESSAGES, Diagram, arrange
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
@click.option("--message", type=int, metavar="N", help="Only the Nth of those, from 1 on.")
def trace(
    directory: str,
    chrome_file: str | None,
    sequence_file: str | None,
    text: bool,
    rank: int | None,
    peer: int | None,
    tag: int | None,
    message: int | None,
) -> None:
    """Show what happened in a job that `ompy-run --trace DIR` ran.

    Without an option it lists the messages. Those of collectives have negative tags, and are left
    out unless --tag asks for them.
    """
    if peer is not None and rank is None:
        raise click.UsageError("--peer says with whom; --rank A is needed beside it")
    if sequence_file and Path(sequence_file).suffix not in DRAWINGS:
        raise click.UsageError(f"--sequence {sequence_file}: a name in .svg or .mmd is needed")
    try:
        found = read(directory)
    except TraceError as problem:
        raise click.ClickException(one_line(str(problem))) from None
    _warn(found)
    if chrome_file:
        _write(chrome_file, chrome(found), "--chrome")
        click.echo(f"{chrome_file}: {len(found.events)} events; open it at ui.perfetto.dev")
    if text:
        click.echo("\n".join(event.line() for event in found.events))
    if not sequence_file and (chrome_file or text):
        return
    chosen = choose(messages(found.events), rank, peer, tag, message)
    if sequence_file:
        _draw(sequence_file, found, [wanted for _, wanted in chosen])
    else:
        click.echo(listing(chosen))


def choose(
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
            f"{number:>5} {message.start / 1000:>12.3f}  {message.sender:>4} "
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
