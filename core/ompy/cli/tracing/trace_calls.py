"""`ompy trace` for calls of the API: as a table, or one with all that it was made of."""

from __future__ import annotations

import click

from ompy.cli.terminal import one_line
from ompy.trace.amounts import duration
from ompy.trace.call_steps import ranks_text, step_lines
from ompy.trace.calls import Call, JointCall, messages_of
from ompy.trace.message_events import messages
from ompy.trace.sink import Event

Numbered = list[tuple[int, JointCall]]


def choose_calls(every: list[JointCall], rank: int | None, what: str | None) -> Numbered:
    """The calls the options name, numbered among all.

    Args:
        every: of the trace.
        rank: only calls that it has made.
        what: a number, or a name; in any case of letters.

    Raises:
        click.ClickException: there is none.
    """
    numbered = list(enumerate(every, 1))
    found = [
        (number, call)
        for number, call in numbered
        if (rank is None or any(part.rank == rank for part in call.parts))
        and (what is None or what == str(number) or what.lower() == call.name.lower())
    ]
    if not found:
        names = ", ".join(sorted({call.name for call in every}))
        raise click.ClickException(
            f"no such call: there are {len(every)}, of these names: {one_line(names) or 'none'}"
        )
    return found


def listing(chosen: Numbered) -> str:
    """A table of calls."""
    heads = ("", "us", "took, us", "call", "communicator", "of", "served by", "line")
    rows = [heads, *(_row(number, call) for number, call in chosen)]
    least = (5, 12, 12)  # as in the table of messages
    widths = [max(len(row[place]) for row in rows) for place in range(len(heads))]
    widths[:3] = map(max, widths, least)
    lines = []
    for row in rows:
        numbers = [text.rjust(width) for text, width in zip(row[:3], widths, strict=False)]
        texts = [text.ljust(width) for text, width in zip(row[3:], widths[3:], strict=True)]
        lines.append("  ".join((*numbers, *texts)).rstrip())
    return "\n".join(lines)


def _row(number: int, call: JointCall) -> tuple[str, ...]:
    ended = all(part.ended is not None for part in call.parts)
    took = f"{(call.end_time - call.start_time) / 1000:.3f}" if ended else "not ended"
    name = call.name if call.is_collective else f"{call.name} (rank {call.first.rank})"
    errors = [f"{error} at {ranks_text(ranks, 0)}" for error, ranks in call.errors.items()]
    served = ", ".join(filter(None, (call.served, *errors)))
    texts = (name, call.communicator, call.amount, served, call.lines)
    return (str(number), f"{call.start_time / 1000:.3f}", took, *map(one_line, texts))


def _with_amount(name: str, amount: str) -> str:
    """A call and how much of what, which may be no more than who it is with."""
    if not amount:
        return name
    between = {"to": " ", "from": " ", "root": ", ", "tag": ", "}
    return name + between.get(amount.partition(" ")[0], " of ") + amount


def call_text(number: int, call: JointCall, every: list[JointCall], events: list[Event]) -> str:
    """One call: who made it when, who served it, and what it was made of."""
    lines = [f"call {number}: {_with_amount(call.name, call.amount)}, {call.communicator}"]
    if call.served:
        lines.append(f"served by {call.served}")
    places: dict[str, list[Call]] = {}
    for part in call.parts:
        places.setdefault(f"{part.line} in {part.fields['function']}", []).append(part)
    for place, parts in places.items():
        lines.append(f"{ranks_text([part.rank for part in parts], 0)} at {place}")
    lines += ["", f"{'rank':>6} {'began, us':>12} {'took':>10}"]
    for part in sorted(call.parts, key=lambda part: part.rank):
        began = (part.began.time - call.start_time) / 1000
        took = "not ended"
        if part.ended is not None:
            took = duration(part.ended.time - part.began.time)
        lines.append(f"{part.rank:>6} {began:>12.3f} {took:>10}  {part.error}".rstrip())
    made = step_lines(call, messages_of(call, every, messages(events)), events)
    return one_line_each([*lines, "", *made] if made else lines)


def one_line_each(lines: list[str]) -> str:
    """Lines that a trace's words cannot break."""
    return "\n".join(one_line(line) if line else "" for line in lines)
