"""A schedule as a file: what was chosen where, for people and for another run.

JSON: `{"ranks": 3, "buffers": true, "polls": 1, "choices": [{"rank": 0, "operation": 1, "value":
["from", 2, 1], "site": "race.py:4", "says": "..."}]}`. `operation` counts what the rank has begun:
sends, receives, probes, polls and waits with a choice. `calls` has all of these of each rank, and
the checksum of the choices that they belong to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ompy import outputs
from ompy.runtime.exploration.boxes import Operation
from ompy.runtime.exploration.call_journal import Call, from_json, to_json
from ompy.runtime.exploration.events import DONE, FROM, NOTHING, SEES, Value
from ompy.runtime.exploration.windows.parts import Parts


class SavedSchedule(NamedTuple):
    """What is in a file.

    Attributes:
        ranks: of the job.
        buffers: standard sends are complete at once.
        polls: as of an `Exchange`.
        script: what is chosen where.
        about: of which program and options, as the writer has put it; empty if nobody has.
        calls: what each rank began; None where that is not there, or is of other choices.
        parts: what is known of windows, as `Parts.plain` has it.
    """

    ranks: int
    buffers: bool
    polls: int
    script: Mapping[Operation, Value]
    about: Mapping[str, Any]
    calls: Sequence[Sequence[Call]] | None = None
    parts: Sequence[Any] = ()


def text_of(
    about: Mapping[str, Any],
    ranks: int,
    polls: int,
    choices: Iterable[tuple[Operation, Value, str, str]],
    *,
    buffers: bool,
    calls: Sequence[Sequence[Call]] = (),
    parts: Sequence[Any] = (),
) -> str:
    """What to write: of each choice its operation, what was chosen, where, and in words.

    Args:
        about: of which program and options.
        ranks: of the job.
        polls: as of an `Exchange`.
        choices: operation, what was chosen, where, in words.
        buffers: standard sends are complete at once.
        calls: what each rank began, as far as it came.
        parts: what is known of windows, as `Parts.plain` has it: it numbers what they serve.
    """
    listed = [
        {"rank": key[0], "operation": key[1], "value": list(value), "site": site, "says": says}
        for key, value, site, says in choices
    ]
    whole = {"about": dict(about), "ranks": ranks, "buffers": buffers, "polls": polls}
    if parts:
        whole["parts"] = list(parts)
    whole["choices"] = listed
    text = json.dumps(whole, indent=1)
    if not calls:
        return f"{text}\n"
    # many, and of no use to who reads the file: in one line
    kept = {"of": outputs.json_checksum(listed), **to_json(calls)}
    return f'{text[:-2]},\n "calls": {json.dumps(kept)}\n}}\n'


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
        calls = found.get("calls")
        if calls is not None:  # who has changed the choices wants another world
            same = calls["of"] == outputs.json_checksum(choices)
            calls = from_json(calls) if same else None
        parts = Parts(found.get("parts", ())).plain()
        return SavedSchedule(*numbers, script, dict(found.get("about", {})), calls, parts)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise ValueError(f"it is damaged or truncated, or no schedule: {problem}") from None
    except (KeyError, TypeError, AttributeError, IndexError) as problem:
        raise ValueError(f"it is no schedule: {type(problem).__name__}: {problem}") from None


def _value(given: Any) -> Value:
    sizes = {FROM: 3, SEES: 3, DONE: 2, NOTHING: 1}
    if not isinstance(given, list) or not given or sizes.get(given[0]) != len(given):
        raise ValueError(f"{given!r} can be chosen nowhere")
    return tuple(given)
