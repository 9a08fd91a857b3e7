"""What a launcher says of its job, as lines: `ompy ps`, `ompy top --once`, and the app's tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ompy.cli.terminal import GAP, format_table, one_line
from ompy.runtime.diagnosis.rank_spans import ranks_in_words

Answer = Mapping[str, Any]
UNITS: Final = ("", "k", "M", "G", "T")  # decimal, as networks count
MATRIX_MAX: Final = 16  # ranks; arbitrary: columns that a terminal has room for
RANK_HEAD: Final = ("rank", "host", "state", "for", "sent", "taken", "unexp", "posted", "is at")
NARROW_HEAD: Final = ("rank", "is at", *RANK_HEAD[1:-1])  # where not all are seen at once
LEAST: Final = 0.05  # s; arbitrary: the first look at a rank that runs knows of nothing before
MESSAGES, BYTES = "messages", "bytes"
_TEXT_MAX: Final = 200  # characters; arbitrary: more is no line any longer


def span_text(seconds: float) -> str:
    """How long, for people."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def short_count(count: int) -> str:
    """A number in four or five characters."""
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f}{UNITS[unit]}" if unit and value < 99.5 else f"{value:.0f}{UNITS[unit]}"


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines."""
    return [GAP.join(row).rstrip() for row in format_table(rows)]


def job_rows(jobs: Iterable[tuple[int, Answer]]) -> list[Sequence[str]]:
    """A row for each job, of its launcher's process and what that says; and a heading."""
    rows: list[Sequence[str]] = [("job", "launcher", "ranks", "hosts", "is", "for", "program")]
    for pid, said in jobs:
        hosts = said["hosts"]
        where = hosts[0] if len(hosts) == 1 else f"{len(hosts)} hosts"
        age, program = span_text(said["age_s"]), one_line(said["program"])
        rows.append((said["job"], str(pid), str(said["ranks"]), where, said["phase"], age, program))
    return rows


def rank_row(row: Answer) -> list[str]:
    """What one rank is in and since when, and its queues; as `RANK_HEAD`."""
    queues = row.get("queues", {})
    counts = (
        "messages_sent",
        "messages_received",
        "unexpected_msgq_length",
        "posted_recvq_length",
    )
    shown = [short_count(queues[name]) if name in queues else "-" for name in counts]
    since = span_text(row["for_s"]) if row.get("for_s", 0.0) >= LEAST else "-"
    return [str(row["rank"]), row["host"], _state(row), since, *shown, place_of(row)]


def _state(row: Answer) -> str:
    if row["state"] != "initialized":
        return str(row["state"])
    if not row["told"]:
        return "silent"
    return "waits" if row["waits"] else "runs"


def place_of(row: Answer) -> str:
    """The line a rank is at, in a file without its folder, and what it waits for."""
    if row["state"] == "initialized" and not row["told"]:
        return "has not said where, in native code perhaps"
    waits = f", waiting for {row['waits']}" if row.get("waits") else ""
    file, colon, rest = str(row.get("line", "")).partition(":")
    return one_line(f"{os.path.basename(file)}{colon}{rest}{waits}")[:_TEXT_MAX]


def matrix_rows(ranks: Sequence[Answer], what: str) -> list[list[str]]:
    """How much each rank has sent to each other one, with a heading; nothing if nobody counts it.

    Args:
        ranks: of the answer.
        what: MESSAGES or BYTES.
    """
    sent = {row["rank"]: dict(row.get(what) or ()) for row in ranks}
    if not any(sent.values()):
        return []
    shown = [row["rank"] for row in ranks][:MATRIX_MAX]
    rows = [["from \\ to", *map(str, shown)]]
    for rank in shown:
        cells = (sent[rank].get(peer, 0) for peer in shown)
        rows.append([str(rank), *(short_count(count) if count else "." for count in cells)])
    return rows


def rail_rows(answer: Answer) -> list[list[str]]:
    """A row for each rail that carries something, or is broken, with a heading; or nothing."""
    broken = {(one["rank"], one["peer"]): str(one["cause"]) for one in answer["broken"]}
    rows = [["rail", "carried", "phase"]]
    for rank, peer, rail, *_, sent, phase in answer["rails"]:
        rows.append([f"{rank} to {peer}, {one_line(rail)}", short_count(sent), phase])
    for (rank, peer), cause in broken.items():
        rows.append([f"{rank} to {peer}", "", f"broken: {one_line(cause)}"])
    return rows if len(rows) > 1 else []


def stack_lines(answer: Answer) -> list[str]:
    """Where every thread of every rank is, the innermost frame first."""
    lines = []
    for one in answer["stacks"]:
        for name, frames in one["threads"]:
            lines.append(one_line(f"rank {one['rank']}, {name}"))
            lines += [one_line(f"  {file}:{line} in {function}") for file, line, function in frames]
    if answer["silent"]:
        lines.append(f"{ranks_in_words(answer['silent'])}: no answer, in native code perhaps")
    return lines or ["no rank is in MPI"]


def heading(said: Answer) -> str:
    """A job in a line."""
    states = ", ".join(f"{count} {state}" for state, count in said["states"].items())
    hosts = f"{len(said['hosts'])} host{'s' * (len(said['hosts']) > 1)}"
    age = span_text(said["age_s"])
    program = one_line(said["program"])
    return f"job {said['job']}: {program}, {hosts}, {said['phase']} for {age}; ranks: {states}"


def finding_lines(answer: Answer) -> list[str]:
    """What the launcher has told its user."""
    return [one_line(line) for _, text in answer.get("findings", ()) for line in text.split("\n")]


def whole_text(said: Answer, answer: Answer) -> list[str]:
    """All of it, for `ompy top --once`."""
    lines = [heading(said), ""]
    lines += table_lines([RANK_HEAD, *(rank_row(row) for row in answer["ranks"])])
    for what, title in ((MESSAGES, "messages sent"), (BYTES, "bytes sent")):
        rows = matrix_rows(answer["ranks"], what)
        if rows:
            lines += ["", title, *table_lines(rows)]
    if len(answer["ranks"]) > MATRIX_MAX:
        lines.append(f"and {len(answer['ranks']) - MATRIX_MAX} more ranks")
    rails = rail_rows(answer)
    found = finding_lines(answer)
    return [*lines, *(["", *table_lines(rails)] if rails else []), *(["", *found] if found else [])]
