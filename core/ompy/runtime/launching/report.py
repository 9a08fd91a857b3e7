"""What the launcher itself says: the block about a failure, the map of a job."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

from ompy.frameworks.job import Job
from ompy.runtime.diagnosis.verdict import Failure

WIDTH: Final = 74  # columns; reference openmpi.md 1.12.1
RULE: Final = "-" * WIDTH


def failure_block(failure: Failure) -> str:
    """Rules around what happened, to whom and what to do; empty if there is nothing to say."""
    if not failure.headline:
        return ""
    parts = [_wrap(failure.headline)]
    if failure.facts:
        parts.append("\n".join(f"  {name:<12}{value}" for name, value in failure.facts))
    if failure.advice:
        parts.append(_wrap(failure.advice))
    return "\n".join((RULE, "\n\n".join(parts), RULE, ""))


def fields_of(failure: Failure) -> dict[str, object]:
    """What a program wants to know of a failure."""
    facts = {
        name.replace(" ", "_"): int(value) if value.isdecimal() else value
        for name, value in failure.facts
    }
    return {
        "exit_code": failure.code,
        "headline": failure.headline,
        "advice": failure.advice,
        **facts,
    }


def _wrap(text: str) -> str:
    """Lines of a text; those it has stay apart, and indented ones (of a traceback) as they are."""
    lines: list[str] = []
    for part in text.splitlines():
        if part.startswith(" ") or not part:
            lines.append(part)
        else:
            lines += textwrap.wrap(part, WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def job_map(job: Job, slots: Sequence[tuple[int, int]], total: int) -> str:
    """Which rank runs where, after `mpirun --display-map` (openmpi.md 2.5.6).

    Args:
        job: what runs.
        slots: slots and most slots (0 for any number) of each host of the job.
        total: slots of all hosts that were allowed.
    """
    lines = [f" Data for JOB [{job.job_id},1] offset 0 Total slots allocated {total}", ""]
    lines += [" ========================   JOB MAP   ========================", ""]
    for node, host in enumerate(job.hosts):
        here = [placement for placement in job.placements if placement.node == node]
        lines.append(
            f" Data for node: {host}\tNum slots: {slots[node][0]}\tMax slots: {slots[node][1]}"
            f"\tNum procs: {len(here)}"
        )
        lines += [
            f" \tProcess jobid: [{job.job_id},1] App: {placement.app} "
            f"Process rank: {placement.rank} Bound: UNBOUND"
            for placement in here
        ]
        lines.append("")
    lines += [" =============================================================", ""]
    return "\n".join(lines)
