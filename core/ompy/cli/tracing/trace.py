"""`ompy trace`: a traced job as a time line, as a sequence diagram or as text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click

from ompy import outputs
from ompy.cli.numbers import WholeNumber
from ompy.cli.refusing import Refused
from ompy.cli.terminal import one_line
from ompy.cli.tracing import trace_calls, trace_exports, trace_gasnet, trace_play
from ompy.frameworks import coll as _coll  # noqa: F401 - its tags have names
from ompy.trace.amounts import byte_count
from ompy.trace.calls import JointCall, joint_calls, messages_of
from ompy.trace.drawing.diagram import MOST_MESSAGES, Diagram
from ompy.trace.drawing.mermaid import mermaid
from ompy.trace.drawing.sequence_diagram import arrange
from ompy.trace.drawing.svg import svg
from ompy.trace.message_events import Message, messages
from ompy.trace.operations import Operation, Operations, operations
from ompy.trace.tag_names import tag_text
from ompy.trace.trace_files import JobTrace, TraceError, read_trace

T = TypeVar("T")
USAGE: Final = 2  # exit code: what was asked for cannot be done
MOST_DRAWN: Final = 1000  # messages; arbitrary: fifty pages
DRAWINGS: dict[str, Callable[[Diagram], str]] = {".svg": svg, ".mmd": mermaid}


@click.command()
@click.argument("directory", metavar="DIR", required=False)
@click.option("--chrome", "chrome_file", metavar="FILE", help="Write JSON for ui.perfetto.dev.")
@click.option("--otf2", "archive", metavar="DIR", help="Write an OTF2 archive: Vampir, Traveler.")
@click.option("--pcapng", "packets", metavar="FILE", help="Write packets for Wireshark.")
@click.option("--dissector", metavar="FILE", help="Write FILE.lua: Wireshark reads them by it.")
@click.option(
    "--sequence", "sequence_file", metavar="FILE", help="Draw messages: FILE.svg or FILE.mmd."
)
@click.option("--play", "page", metavar="FILE", help="Write FILE.html: a page that plays it.")
@click.option("--text", is_flag=True, help="Print every event on a line.")
@click.option("--calls", is_flag=True, help="List the program's calls of MPI.")
@click.option("--call", metavar="C", help="Only call number C, or calls of this name.")
@click.option("--rank", type=int, metavar="A", help="Only messages rank A sent, or received.")
@click.option("--peer", type=int, metavar="B", help="Only messages between A and B.")
@click.option("--tag", type=int, metavar="T", help="Only messages with this tag.")
@click.option("--gasnet", is_flag=True, help="GASNet's operations, not MPI's messages.")
@click.option("--handler", metavar="H", help="Only active messages for it: its name or index.")
@click.option("--message", type=int, metavar="N", help="Only the Nth of those, from 1 on.")
@click.option("--from", "first", type=WholeNumber(1), metavar="N", help="From the Nth on.")
@click.option("--count", "most", type=WholeNumber(1), metavar="M", help="Only M of those.")
def trace(
    directory: str | None,
    text: bool,
    sequence_file: str | None,
    page: str | None,
    **options: Any,
) -> None:
    """Show what happened in a job that `ompy-run --trace DIR` ran.

    Without an option it lists the messages and the collective calls. Messages of collectives have
    negative tags, and are left out unless --tag asks for them, or --call for those of a call. Of a
    job that used GASNet it lists active messages, puts and gets; the messages of barriers and
    memset are left out unless --handler asks for them. A picture has 20 messages at most: more are
    drawn on several pages, FILE-1.svg and so on, unless --count says how many. --play writes a page
    for a browser, which plays messages, calls and matching queues of MPI step by step, and active
    messages with their handlers, puts and gets of GASNet.

    Packets are in a trace that was made with --mca trace_base_wire BYTES. The dissector is of what
    is installed, and needs no DIR.
    """
    exports = [options.pop(name) for name in ("chrome_file", "archive", "packets", "dissector")]
    wanted = Wanted(**options)
    _check(wanted, sequence_file, page)
    if exports[-1]:
        trace_exports.export_dissector(exports[-1])
    if directory is None:
        if exports[-1] and not (any(exports[:-1]) or sequence_file or page or text):
            return
        raise click.UsageError("the directory of a trace is needed")
    try:
        found = read_trace(directory)
    except TraceError as problem:
        raise Refused(one_line(str(problem))) from None
    _warn(found)
    _export(found, *exports[:-1])
    if page:
        trace_play.export_page(page, found, *_played(found, wanted))
    if text:
        click.echo("\n".join(event.line() for event in found.events))
    if sequence_file or not (any(exports) or page or text):
        _show(found, wanted, sequence_file)


def _export(
    found: JobTrace, chrome_file: str | None, archive: str | None, packets: str | None
) -> None:
    """Write what other tools read."""
    if chrome_file:
        from ompy.trace.exporting.chrome import chrome

        _write(chrome_file, chrome(found), "--chrome")
        click.echo(f"{chrome_file}: {len(found.events)} events; open it at ui.perfetto.dev")
    if archive:
        trace_exports.export_otf2(archive, found)
    if packets:
        trace_exports.export_pcapng(packets, found)


class Wanted(NamedTuple):
    """Which messages, operations or calls, as the options of these names say."""

    rank: int | None = None
    peer: int | None = None
    tag: int | None = None
    message: int | None = None
    handler: str | None = None
    gasnet: bool = False
    calls: bool = False
    call: str | None = None
    first: int | None = None
    most: int | None = None

    @property
    def of_calls(self) -> bool:
        """Calls are asked for."""
        return self.calls or self.call is not None

    @property
    def of_messages(self) -> bool:
        """Only messages of MPI are."""
        return self.peer is not None or self.tag is not None or self.message is not None

    @property
    def of_gasnet(self) -> bool:
        """Only operations of GASNet are."""
        return self.gasnet or self.handler is not None


def _check(wanted: Wanted, sequence_file: str | None, page: str | None) -> None:
    if wanted.tag is not None and wanted.of_gasnet:
        raise click.UsageError("--tag is of MPI's messages; --gasnet and --handler are of GASNet's")
    if wanted.of_calls and (wanted.of_gasnet or wanted.of_messages):
        raise click.UsageError("--calls and --call take no other choice than --rank")
    if wanted.peer is not None and wanted.rank is None:
        raise click.UsageError("--peer says with whom; --rank A is needed beside it")
    if sequence_file and Path(sequence_file).suffix not in DRAWINGS:
        raise click.UsageError(f"--sequence {sequence_file}: a name in .svg or .mmd is needed")
    if page and Path(page).suffix not in trace_play.SUFFIXES:
        raise click.UsageError(f"--play {page}: a name in .html is needed")


def _show(found: JobTrace, wanted: Wanted, sequence_file: str | None) -> None:
    """List messages, calls or operations, or draw them. What there is of each is listed."""
    every, known = messages(found.events), operations(found.events)
    calls = joint_calls(found.events)
    plain = wanted.tag is not None or any(message.tag >= 0 for message in every)
    together = [call for call in calls if call.is_collective]
    gasnet = wanted.of_gasnet or (not plain and not calls and bool(known.all))
    if wanted.of_calls or (not plain and not wanted.of_gasnet and together):
        _show_calls(found, (calls, every), wanted, sequence_file)
    elif not gasnet:
        chosen = _part(choose_messages(every, *wanted[:4]), wanted)
        if sequence_file:
            _draw(sequence_file, found, chosen, wanted)
            return
        click.echo(listing(chosen))
        if together and not wanted.of_messages:
            numbered = [(calls.index(call) + 1, call) for call in together]
            click.echo("\n" + trace_calls.listing(_part(numbered, wanted)))
    if gasnet or (known.all and not wanted.of_messages and not wanted.of_calls):
        _show_operations(found, known, wanted, sequence_file)


def _played(found: JobTrace, wanted: Wanted) -> tuple[list[Message] | None, list[Operation] | None]:
    """The messages and operations that --play shows; None for all, where no option chooses."""
    if wanted == Wanted():
        return None, None
    every, calls = messages(found.events), joint_calls(found.events)
    known = operations(found.events)
    only_gasnet = not every and not calls and bool(known.all)
    if wanted.of_gasnet or (only_gasnet and wanted.tag is None and not wanted.of_calls):
        rank, peer, _, number, handler = wanted[:5]
        named = trace_gasnet.choose_operations(known, rank, peer, handler, number)
        return [], [operation for _, operation in _part(named, wanted)]
    if wanted.of_calls:
        chosen = trace_calls.choose_calls(calls, wanted.rank, wanted.call)
        own = {id(m): m for _, call in chosen for m in messages_of(call, calls, every)}
        numbered = list(enumerate(own.values(), 1))
    else:
        numbered = choose_messages(every, *wanted[:4])
    return [message for _, message in _part(numbered, wanted)], []


def _show_calls(
    found: JobTrace,
    known: tuple[list[JointCall], list[Message]],
    wanted: Wanted,
    sequence_file: str | None,
) -> None:
    """Calls as a table, one in full, or the messages of some drawn."""
    calls, every = known
    if not calls:
        raise click.ClickException(
            "no such call: there are none in this trace; it is of an earlier version, or of a "
            "program that does not call MPI"
        )
    chosen = trace_calls.choose_calls(calls, wanted.rank, wanted.call)
    if sequence_file:
        of_them = {id(m): m for _, call in chosen for m in messages_of(call, calls, every)}
        numbered = list(enumerate(of_them.values(), 1))
        if not numbered:
            raise click.ClickException(
                "these calls have no messages to draw: they were served in shared memory; "
                "--call C without --sequence says what was done there"
            )
        title = f"{chosen[0][1].name}: {one_line(chosen[0][1].amount)}" if len(chosen) == 1 else ""
        _draw(sequence_file, found, _part(numbered, wanted), wanted, title)
        return
    chosen = _part(chosen, wanted)
    if wanted.call is not None and len(chosen) == 1:
        click.echo(trace_calls.call_text(*chosen[0], calls, found.events))
    else:
        click.echo(trace_calls.listing(chosen))


def _part(numbered: list[tuple[int, T]], wanted: Wanted) -> list[tuple[int, T]]:
    """What --from and --count leave of it.

    Raises:
        click.ClickException: nothing.
    """
    first = (wanted.first or 1) - 1
    end = None if wanted.most is None else first + wanted.most
    if first >= len(numbered):
        raise click.ClickException(f"--from {first + 1}: there are {len(numbered)} of those")
    return numbered[first:end]


def _show_operations(
    found: JobTrace, known: Operations, wanted: Wanted, sequence_file: str | None
) -> None:
    rank, peer, _, number, handler = wanted[:5]
    chosen = trace_gasnet.choose_operations(known, rank, peer, handler, number)
    if sequence_file:
        diagram = trace_gasnet.draw(found, known, chosen)
        _write(sequence_file, DRAWINGS[Path(sequence_file).suffix](diagram), "--sequence")
        click.echo(f"{sequence_file}: {len(chosen)} operation{'s' * (len(chosen) != 1)}")
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
            f"tags there are: {', '.join(map(_named, tags[:20])) or 'none'}"
        )
    return numbered


def _named(tag: int) -> str:
    """A tag, and what messages with it are of, where that is not the program's own."""
    return str(tag) if tag >= 0 else f"{tag} ({tag_text(tag)})"


def listing(chosen: list[tuple[int, Message]]) -> str:
    """A table of messages."""
    rows = [f"{'':>5} {'us':>12}  {'from':>4} {'to':>4} {'tag':>6} {'size':>10}  protocol"]
    for number, message in chosen:
        protocol = message.protocol or "?"
        if message.decided and message.decided != message.protocol:
            protocol += f", became {message.decided}"
        if message.tag < 0:
            protocol += f"; {tag_text(message.tag)}"
        rows.append(
            f"{number:>5} {message.start_time / 1000:>12.3f}  {message.sender:>4} "
            f"{message.receiver:>4} {message.tag:>6} {byte_count(message.size):>10}  {protocol}"
        )
    return "\n".join(rows)


def _draw(
    path: str,
    trace: JobTrace,
    chosen: list[tuple[int, Message]],
    wanted: Wanted,
    title: str = "",
) -> None:
    """One picture, or so many that none has too much, unless --count says how much."""
    size = MOST_MESSAGES if wanted.most is None else len(chosen)
    if len(chosen) > MOST_DRAWN:
        raise click.ClickException(
            f"{len(chosen)} messages fit, {MOST_DRAWN} at most are drawn: choose with --rank, "
            "--peer, --tag, --message, --call, --from and --count; without --sequence they are "
            "listed"
        )
    pages = [chosen[first : first + size] for first in range(0, len(chosen), size)]
    for number, page in enumerate(pages, 1):
        numbers, drawn = zip(*page, strict=True)
        diagram = arrange(drawn, trace.headers, numbers)
        if title:
            diagram.title = title
        name = Path(path)
        if len(pages) > 1:
            name = name.with_name(f"{name.stem}-{number}{name.suffix}")
        _write(str(name), DRAWINGS[name.suffix](diagram), "--sequence")
        click.echo(f"{name}: {len(page)} message{'s' * (len(page) != 1)}")


def _write(path: str, text: str, option: str) -> None:
    try:
        outputs.write_text(path, text)
    except (OSError, ValueError) as problem:
        raise trace_exports.unwritable(option, path, problem) from None


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
