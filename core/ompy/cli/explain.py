"""`ompy explain`: which protocol a message takes, why, and what would change it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from typing import Any, Final

import click

from ompy.cli.bytecounts import parse_bytes
from ompy.cli.own_jobs import answer_of
from ompy.frameworks.conduit import MAX_ARGS
from ompy.frameworks.pml import BUFFERED, READY, STANDARD, SYNCHRONOUS
from ompy.trace.amounts import byte_count

MODES: Final = {
    "standard": STANDARD,
    "buffered": BUFFERED,
    "sync": SYNCHRONOUS,
    "ready": READY,
}
OPERATIONS: Final = ("short", "medium", "long", "long-async", "put", "get")
WIDTH: Final = 96  # columns; arbitrary: fits most terminals
PEER_MAX: Final = 63  # arbitrary: a rank has to be started for each


@click.command()
@click.option(
    "--size", metavar="BYTES", help="Of the message, as 512, 64k or 1m; needed but for a Short."
)
@click.option(
    "--peer",
    default=1,
    show_default=True,
    type=click.IntRange(0, PEER_MAX),
    help="The receiver's rank; rank 0 sends.",
)
@click.option("--mode", type=click.Choice(list(MODES)), help="Of a send; standard unless given.")
@click.option("--noncontig", is_flag=True, help="The send buffer is not one piece of memory.")
@click.option("--gasnet", type=click.Choice(OPERATIONS), help="An operation of GASNet instead.")
@click.option("--inside", is_flag=True, help="GASNet: local memory of the own segment.")
@click.option("--nonbulk", is_flag=True, help="GASNet: the put lets go of its source at once.")
@click.option("--offset", type=click.IntRange(0), help="GASNet: in the peer's segment.")
@click.option("--arguments", type=click.IntRange(0, MAX_ARGS), help="GASNet: of the message.")
@click.option("--mca", nargs=2, multiple=True, metavar="NAME VALUE", help="As for ompy-run.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def explain(
    size: str | None,
    peer: int,
    mode: str | None,
    noncontig: bool,
    gasnet: str | None,
    inside: bool,
    nonbulk: bool,
    offset: int | None,
    arguments: int | None,
    mca: list[tuple[str, str]],
    as_json: bool,
) -> None:
    """Say which protocol a message would take, or which way an operation of GASNet.

    A job of a few ranks is started on this host, and the PML or conduit of rank 0 is asked: what it
    answers holds for the rails and parameters of just such a job.
    """
    if size is None and gasnet != "short":
        raise click.UsageError("Missing option '--size'.")
    bytes_ = parse_bytes(size or "0")
    told = {"inside": inside, "nonbulk": nonbulk, "offset": offset, "arguments": arguments}
    given = [f"--{name}" for name, value in told.items() if value not in (None, False)]
    question: dict[str, Any]
    shown: dict[str, Any]
    if gasnet is None:
        if given:
            raise click.UsageError(f"{given[0]} is of GASNet's operations: --gasnet put, ...")
        mode = mode or "standard"
        question = {"peer": peer, "size": bytes_, "mode": MODES[mode], "contiguous": not noncontig}
        shown = {**question, "mode": mode}
        layout = "not contiguous" if noncontig else "contiguous"
        title = f"{byte_count(bytes_)}, {mode} mode, {layout}, from rank 0 to rank {peer}"
    else:
        if mode or noncontig:
            raise click.UsageError("--mode and --noncontig are of MPI's messages")
        shown = _operation(gasnet, peer, bytes_, told)
        question = {"peer": peer, "operation": shown}
        title = f"{gasnet} of {byte_count(bytes_)}, between rank 0 and rank {peer}"
    found = run_explaining_job(question, mca)
    if "problem" in found:
        raise click.ClickException(found["problem"])
    if as_json:
        click.echo(json.dumps({**found, "question": shown}, indent=2))
        return
    click.echo(title)
    click.echo("\n".join(explanation_text(found)))


def _operation(name: str, peer: int, size: int, told: dict[str, Any]) -> dict[str, Any]:
    """The fields of an `OperationAsked`; options that mean nothing for it are refused."""
    meant = {"put": ("inside", "nonbulk", "offset"), "get": ("inside", "offset")}
    for option, value in told.items():
        if value not in (None, False) and option not in meant.get(name, ("arguments",)):
            raise click.UsageError(f"--{option} means nothing for --gasnet {name}")
    return {
        "name": name,
        "peer": peer,
        "size": size,
        "inside": told["inside"],
        "bulk": not told["nonbulk"],
        "offset": told["offset"] or 0,
        "arguments": told["arguments"] or 0,
    }


def run_explaining_job(question: dict[str, Any], mca: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Run the job that answers. Exits with its code when it fails."""
    options = ["-n", str(int(question["peer"]) + 1)]
    return answer_of(options, mca, "ompy.cli.explained", json.dumps(question))


def explanation_text(found: dict[str, Any]) -> list[str]:
    """The answer as lines of text."""
    settings = found["parameters"]
    lines = ["", f"Protocol: {found['protocol']}", "", "Rails"]
    lines += [_wrapped("- ", rail) for rail in found["rails"]]
    lines += ["", "The way through the rule"]
    for number, part in enumerate(found["branches"], 1):
        lines += [_wrapped(f"{number}. ", part["text"]), *_settings(part, settings)]
    lines += ["", "The receiver"]
    lines += [_wrapped("- ", text) for text in found["receiver"]]
    if found["limits"]:
        lines += ["", "Limits"]
        for part in found["limits"]:
            lines += [_wrapped("- ", part["text"]), *_settings(part, settings)]
    lines += ["", "What would change it"]
    lines += [_wrapped("- ", f"{c['text']}: {c['protocol']}") for c in found["changes"]]
    lines += ["", "By size, all else being equal"]
    lines += [f"  from {size:>12} bytes  {protocol}" for size, protocol in found["sizes"]]
    return lines


def _wrapped(head: str, text: str) -> str:
    indent = " " * (len(head) + 2)
    return textwrap.fill(text, WIDTH, initial_indent=f"  {head}", subsequent_indent=indent)


def _settings(part: dict[str, Any], settings: dict[str, dict[str, str]]) -> list[str]:
    return [
        f"       {name} = {settings[name]['value']} ({settings[name]['origin']})"
        for name in part["parameters"]
    ]
