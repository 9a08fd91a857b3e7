"""A schedule as a file: what was chosen where, for people and for another run.

JSON: `{"ranks": 3, "buffers": true, "polls": 1, "choices": [{"rank": 0, "operation": 1, "value":
["from", 2, 1], "site": "race.py:4", "says": "..."}]}`. `operation` counts what the rank has begun:
sends, receives, probes, polls and waits with a choice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ompy.runtime.exploration.boxes import Operation
from ompy.runtime.exploration.events import DONE, FROM, NOTHING, Value


class SavedSchedule(NamedTuple):
    """What is in a file.

    Attributes:
        ranks: of the job.
        buffers: standard sends are complete at once.
        polls: as of an `Exchange`.
        script: what is chosen where.
        about: of which program and options, as the writer has put it; empty if nobody has.
    """

    ranks: int
    buffers: bool
    polls: int
    script: Mapping[Operation, Value]
    about: Mapping[str, Any]


def text_of(
    about: Mapping[str, Any],
    ranks: int,
    polls: int,
    choices: Iterable[tuple[Operation, Value, str, str]],
    *,
    buffers: bool,
) -> str:
    """What to write: of each choice its operation, what was chosen, where, and in words."""
    listed = [
        {"rank": key[0], "operation": key[1], "value": list(value), "site": site, "says": says}
        for key, value, site, says in choices
    ]
    whole = {"about": dict(about), "ranks": ranks, "buffers": buffers, "polls": polls}
    whole["choices"] = listed
    return json.dumps(whole, indent=1) + "\n"


def read_schedule(path: str) -> SavedSchedule:
    """Read a file.

    Raises:
        ValueError: it is no schedule; the text says why.
        OSError: it cannot be read.
    """
    try:
        found = json.loads(Path(path).read_text())
        choices = found["choices"]
        script = {(one["rank"], one["operation"]): _value(one["value"]) for one in choices}
        if not all(isinstance(part, int) for key in script for part in key):
            raise ValueError("a rank or an operation is no number")
        numbers = int(found["ranks"]), bool(found["buffers"]), int(found["polls"])
        return SavedSchedule(*numbers, script, dict(found.get("about", {})))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise ValueError(f"it is damaged or truncated, or no schedule: {problem}") from None
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"it is no schedule: {type(problem).__name__}: {problem}") from None


def _value(given: Any) -> Value:
    sizes = {FROM: 3, DONE: 2, NOTHING: 1}
    if not isinstance(given, list) or not given or sizes.get(given[0]) != len(given):
        raise ValueError(f"{given!r} can be chosen nowhere")
    return tuple(given)
