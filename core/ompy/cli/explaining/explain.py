"""`ompy explain`: which protocol or algorithm is taken, why, and what would change it."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterable
from typing import Any, Final

import click

from ompy.cli.bytecounts import parse_bytes
from ompy.cli.explaining.explain_names import CalledCollective, CollectiveName
from ompy.cli.numbers import WholeNumber
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
RANKS_MAX: Final = 256  # arbitrary: virtual ranks are threads
PEER_MAX: Final = 63  # arbitrary: a rank has to be started for each


@click.command()
@click.argument("collective", required=False, type=CollectiveName())
@click.option(
    "--size", metavar="BYTES", help="As 512, 64k or 1m; needed but for a Short or a barrier."
)
@click.option(
    "--peer",
    default=1,
    show_default=True,
    type=WholeNumber(0, PEER_MAX),
    help="The receiver's rank; rank 0 sends.",
)
@click.option("--mode", type=click.Choice(list(MODES)), help="Of a send; standard unless given.")
@click.option("--noncontig", is_flag=True, help="The send buffer is not one piece of memory.")
@click.option("--gasnet", type=click.Choice(OPERATIONS), help="An operation of GASNet instead.")
@click.option("--inside", is_flag=True, help="GASNet: local memory of the own segment.")
@click.option("--nonbulk", is_flag=True, help="GASNet: the put lets go of its source at once.")
@click.option("--offset", type=WholeNumber(0), help="GASNet: in the peer's segment.")
@click.option("--arguments", type=WholeNumber(0, MAX_ARGS), help="GASNet: of the message.")
@click.option("--ranks", "-n", type=WholeNumber(2, RANKS_MAX), help="Collective: members.")
@click.option("--hosts", type=WholeNumber(1), help="Collective: hosts that they are on; 1.")
@click.option("--root", type=WholeNumber(0), help="Collective: the root's rank; 0.")
@click.option("--mca", nargs=2, multiple=True, metavar="NAME VALUE", help="As for ompy-run.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def explain(
    collective: CalledCollective | None,
    size: str | None,
    mca: list[tuple[str, str]],
    as_json: bool,
    **told: Any,
) -> None:
    """Say which protocol a message would take, or a COLLECTIVE which algorithm, and its steps.

    For a message, or an operation of GASNet, a job of a few ranks is started on this host, and the
    PML or conduit of rank 0 is asked: what it answers holds for the rails and parameters of just
    such a job. For a collective operation a virtual job is asked, and makes the call: its steps
    are drawn. A COLLECTIVE has any of its names: allreduce, MPI_Iallreduce, Allreduce_init.
    """
    barrier = collective is not None and collective.operation == "barrier"
    if size is None and told["gasnet"] != "short" and not barrier:
        raise click.UsageError("Missing option '--size'.")
    bytes_ = parse_bytes(size or "0")
    if collective is not None:
        found = _collective(collective, bytes_, told, mca)
        shown, title = found.pop("question"), found.pop("title")
        lines = collective_text(found)
    else:
        question, shown, title = _question(bytes_, told)
        found = run_explaining_job(question, mca)
        if "problem" in found:
            raise click.ClickException(found["problem"])
        lines = explanation_text(found)
    if as_json:
        click.echo(json.dumps({**found, "question": shown}, indent=2))
        return
    click.echo(title)
    click.echo("\n".join(lines))


def _given(told: dict[str, Any], names: Iterable[str]) -> list[str]:
    """Which of some options were given."""
    return [name for name in names if told[name] not in (None, False)]


def _question(size: int, told: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], str]:
    """What a job is asked about a message, the same as it is shown, and its title."""
    gasnet, mode, peer = told["gasnet"], told["mode"], told["peer"]
    for name in _given(told, ("ranks", "hosts", "root")):
        raise click.UsageError(f"--{name} is of collective operations: ompy explain bcast, ...")
    own = {name: told[name] for name in ("inside", "nonbulk", "offset", "arguments")}
    if gasnet is not None:
        if mode or told["noncontig"]:
            raise click.UsageError("--mode and --noncontig are of MPI's messages")
        shown = _operation(gasnet, peer, size, own)
        title = f"{gasnet} of {byte_count(size)}, between rank 0 and rank {peer}"
        return {"peer": peer, "operation": shown}, shown, title
    for name in _given(told, own):
        raise click.UsageError(f"--{name} is of GASNet's operations: --gasnet put, ...")
    mode = mode or "standard"
    contiguous = not told["noncontig"]
    question = {"peer": peer, "size": size, "mode": MODES[mode], "contiguous": contiguous}
    layout = "contiguous" if contiguous else "not contiguous"
    title = f"{byte_count(size)}, {mode} mode, {layout}, from rank 0 to rank {peer}"
    return question, {**question, "mode": mode}, title


def _collective(
    called: CalledCollective, size: int, told: dict[str, Any], mca: list[tuple[str, str]]
) -> dict[str, Any]:
    """The answer about a collective operation."""
    from ompy.cli.explaining.explain_collective import ROOTED, Asked, explain_collective

    names = ("mode", "noncontig", "gasnet", "inside", "nonbulk", "offset", "arguments")
    for name in _given(told, names):
        raise click.UsageError(f"--{name} means nothing for a collective operation")
    ranks, hosts, root = told["ranks"] or 2, told["hosts"] or 1, told["root"] or 0
    if hosts > ranks or root >= ranks:
        raise click.UsageError(f"there are {ranks} ranks: -n says how many")
    if told["root"] is not None and called.operation not in ROOTED:
        raise click.UsageError(f"--root means nothing for {called.operation}")
    sharing = -(-ranks // hosts) > len(os.sched_getaffinity(0))
    asked = Asked(called.operation, size, ranks, hosts, root, sharing, called.form)
    notes, call = [], ""
    if called.call.lower() != called.operation:
        call = called.call
        notes.append(f"{call} is served by {called.operation} of the framework coll.")
    if called.counts:
        notes.append("Asked with the same count for each rank. Other counts may go another way.")
    return {**explain_collective(asked._replace(call=call), mca), "notes": notes}


def collective_text(found: dict[str, Any]) -> list[str]:
    """The answer about a collective operation as lines of text."""
    settings = found["parameters"]
    lines = [*found.get("notes", ()), "", f"Served by {found['component']}: {found['algorithm']}"]
    if found["nonblocking"] != found["component"]:
        lines.append(f"Nonblocking: {found['nonblocking']}")
    lines += ["", "The components, by priority"]
    for each in found["components"]:
        why = f": {each['reason']}" if each["reason"] else ""
        text = f"{each['component']} ({each['priority']:g}): {each['verdict']}{why}"
        lines.append(_wrapped("- ", text))
    lines += ["", "The way through the rule"]
    for number, part in enumerate(found["branches"], 1):
        lines += [_wrapped(f"{number}. ", part["text"]), *_settings(part, settings)]
    if found["limits"]:
        lines += ["", "Limits"]
        for part in found["limits"]:
            lines += [_wrapped("- ", part["text"]), *_settings(part, settings)]
    lines += ["", "What would change it"] if found["changes"] else []
    for part in found["changes"]:
        text = f"{part['text']}: {part['protocol']}"
        lines += [_wrapped("- ", text), *_settings(part, settings)]
    if found["sizes"]:
        lines += ["", "By size, all else being equal"]
        lines += [f"  from {size:>12} bytes  {name}" for size, name in found["sizes"]]
    steps = found["steps"] or ["without a message, in no way that a trace shows"]
    return [*lines, "", f"Its steps: {steps[0]}", *steps[1:]]


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
    return answer_of(options, mca, "ompy.cli.explaining.explained", json.dumps(question))


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
