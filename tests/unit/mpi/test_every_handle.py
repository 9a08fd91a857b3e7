"""A parameter that is a handle or a status refuses what is none, before anything is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.api_parameters import Parameter, call_with, check_answers, declared

KINDS = {
    *("Comm", "Datatype", "Errhandler", "Group", "Info", "Intracomm", "Op", "Session", "Status"),
}
PARAMETERS = [each for each in declared() if each.kinds & KINDS and each.kinds <= KINDS | {"None"}]
CLASSES = sorted({each.owner for each in PARAMETERS})


def answer(call: Any, parameter: Parameter, comm: Any) -> str:
    """What a call says to a text; nothing where it refuses it, by its name."""
    try:
        call_with(call, parameter, comm, "x")
    except TypeError as problem:
        text = str(problem)
        refused = text.startswith(f"Argument '{parameter.name}' has incorrect type (expected ")
        return "" if refused and text.endswith("got str)") else text
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return "it was not looked at"


@pytest.mark.filterwarnings("ignore:the 'buf' argument is not used")
@pytest.mark.parametrize("owner", CLASSES, ids=lambda name: name or "MPI")
def test_what_is_none_is_refused(owner: str, tmp_path: Path) -> None:
    check_answers(owner, PARAMETERS, tmp_path, answer)


def test_there_are_many() -> None:
    assert len(PARAMETERS) > 150
