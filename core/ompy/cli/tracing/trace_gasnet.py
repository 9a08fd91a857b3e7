"""`ompy trace` for GASNet: which of a trace's operations, as a table or a diagram."""

from __future__ import annotations

import click

from ompy.cli.terminal import one_line
from ompy.trace.amounts import byte_count, duration
from ompy.trace.drawing.diagram import MOST_MESSAGES, Diagram
from ompy.trace.drawing.operation_sequence import arrange
from ompy.trace.operations import Operation, Operations, is_of_program
from ompy.trace.trace_files import JobTrace

Numbered = list[tuple[int, Operation]]


def choose_operations(
    found: Operations, rank: int | None, peer: int | None, handler: str | None, number: int | None
) -> Numbered:
    """The operations the options name, numbered as `--message` counts them.

    Raises:
        click.ClickException: there is none.
    """
    ranks = {rank, peer} - {None}
    fits = [
        each
        for each in found.all
        if ranks <= {each.source, each.target}
        and (peer != rank or peer is None or each.source == each.target)
        and (is_of_program(each) if handler is None else _is_for(each, handler, found))
    ]
    numbered = list(enumerate(fits, 1))
    if number is not None:
        numbered = numbered[number - 1 : number] if number > 0 else []
    if not numbered:
        names = sorted({found.handler_name(each) for each in found.all if each.is_message})
        raise click.ClickException(
            f"no such operation: {len(fits)} of {len(found.all)} fit the options; handlers that "
            f"messages are for: {one_line(', '.join(names[:20])) or 'none'}"
        )
    return numbered


def _is_for(each: Operation, handler: str, found: Operations) -> bool:
    return each.is_message and handler in (str(each.handler), found.handler_name(each))


def listing(chosen: Numbered, found: Operations) -> str:
    """A table of operations."""
    rows = [f"{'':>5} {'us':>12}  {'from':>4} {'to':>4} {'size':>10}  operation"]
    for number, each in chosen:
        rows.append(
            f"{number:>5} {each.start_time / 1000:>12.3f}  {each.source:>4} {each.target:>4} "
            f"{byte_count(each.size):>10}  {one_line(_line(each, found))}"
        )
    return "\n".join(rows)


def _line(each: Operation, found: Operations) -> str:
    name = f" {found.handler_name(each)}" if each.is_message else ""
    told = [f"{each.name}{name}: {each.way or 'its sender was not traced'}"]
    if each.credits >= 0:
        told.append(f"{each.credits} credits left")
    if each.stalled is not None and each.began is not None:
        told.append(f"waited {duration(each.began.time - each.stalled.time)} for a credit")
    if each.began is not None and each.handled is not None:
        told.append(f"handled after {duration(each.handled.time - each.began.time)}")
    done = [post.done.time for post in each.posts if post.done is not None]
    if each.began is not None and done and len(done) == len(each.posts):
        told.append(f"complete after {duration(max(done) - each.began.time)}")
    elif each.posts:
        told.append("not complete")
    if each.hidden is not None:
        told.append("its credit was banked" if each.banked else "its credit went back")
    return ", ".join(told)


def draw(trace: JobTrace, found: Operations, chosen: Numbered) -> Diagram:
    """The diagram of some operations.

    Raises:
        click.ClickException: there are too many.
    """
    if len(chosen) > MOST_MESSAGES:
        raise click.ClickException(
            f"{len(chosen)} operations fit, {MOST_MESSAGES} at most can be drawn: choose with "
            "--rank, --peer, --handler and --message; without --sequence they are listed"
        )
    return arrange([each for _, each in chosen], found, trace.headers)
