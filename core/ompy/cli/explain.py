"""`ompy explain`: which protocol a message takes, why, and what would change it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from typing import Any, Final

import click

from ompy.cli.bytecounts import parse_bytes
from ompy.cli.own_jobs import answer_of
from ompy.frameworks.pml import BUFFERED, READY, STANDARD, SYNCHRONOUS
from ompy.trace.amounts import byte_count

MODES: Final = {
    "standard": STANDARD,
    "buffered": BUFFERED,
    "sync": SYNCHRONOUS,
    "ready": READY,
}
WIDTH: Final = 96  # columns; arbitrary: fits most terminals
PEER_MAX: Final = 63  # arbitrary: a rank has to be started for each


@click.command()
@click.option("--size", required=True, metavar="BYTES", help="Of the message, as 512, 64k or 1m.")
@click.option(
    "--peer",
    default=1,
    show_default=True,
    type=click.IntRange(0, PEER_MAX),
    help="The receiver's rank; rank 0 sends.",
)
@click.option("--mode", default="standard", show_default=True, type=click.Choice(list(MODES)))
@click.option("--noncontig", is_flag=True, help="The send buffer is not one piece of memory.")
@click.option("--mca", nargs=2, multiple=True, metavar="NAME VALUE", help="As for ompy-run.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def explain(
    size: str, peer: int, mode: str, noncontig: bool, mca: list[tuple[str, str]], as_json: bool
) -> None:
    """Say which protocol a message would take.

    A job of a few ranks is started on this host, and the PML of rank 0 is asked: what it answers
    holds for the rails and parameters of just such a job.
    """
    bytes_ = parse_bytes(size)
    question = {"peer": peer, "size": bytes_, "mode": MODES[mode], "contiguous": not noncontig}
    found = ask(question, mca)
    if "problem" in found:
        raise click.ClickException(found["problem"])
    if as_json:
        click.echo(json.dumps({**found, "question": {**question, "mode": mode}}, indent=2))
        return
    layout = "not contiguous" if noncontig else "contiguous"
    click.echo(f"{byte_count(bytes_)}, {mode} mode, {layout}, from rank 0 to rank {peer}")
    click.echo("\n".join(report(found)))


def ask(question: dict[str, Any], mca: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Run the job that answers. Exits with its code when it fails."""
    options = ["-n", str(int(question["peer"]) + 1)]
    return answer_of(options, mca, "ompy.cli.explained", json.dumps(question))


def report(found: dict[str, Any]) -> list[str]:
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
