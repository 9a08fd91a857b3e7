"""Where each thread of each rank is, in lines: `--get-stack-traces`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ompy.runtime.diagnosis.rank_spans import ranks_in_words

Frame = tuple[str, int, str]  # file, line, function
FORK: Final = "ompy/runtime/ranks/forked.py"


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


def _of_program(frames: Sequence[Frame]) -> Sequence[Frame]:
    """Without the calls by which a fork of the agent has come to the program."""
    begins = 0
    for place, (file, _, function) in enumerate(frames):
        if file.endswith(FORK) and function == "run":
            begins = place + 1
    return frames[begins:]


def _of_rank(said: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, frames in said.get("threads", ()):
        lines.append(f"  thread {name}")
        for file, line, function in _of_program(list(reversed(frames))):
            lines.append(f"    {file}:{line} in {function}")
    return lines or ["  it has not said"]
