"""Where each thread of each rank is, in lines: `--get-stack-traces`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ompy.runtime.rank_spans import ranks_in_words


def stack_lines(where: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """The stacks, the innermost call last; ranks that are in the same lines are told of together.

    Args:
        where: by rank, what it has said (`more_of` in `rank_report.py`).
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    for rank in sorted(where):
        groups.setdefault(tuple(_of_rank(where[rank])), []).append(rank)
    lines = []
    for stacks, ranks in groups.items():
        lines += [f"stacks of {ranks_in_words(ranks)}, the innermost call last:", *stacks]
    return lines


def _of_rank(said: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, frames in said.get("threads", ()):
        lines.append(f"  thread {name}")
        lines += [f"    {file}:{line} in {function}" for file, line, function in reversed(frames)]
    return lines or ["  it has not said"]
