"""Every parameter that the API's stubs call an int takes what has `__int__`, as mpi4py's do.

Asked of the calls themselves: a value whose conversion raises. mpi4py 4.1.2 converts all of them
before it looks at anything else, so the other arguments need not fit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.api_parameters import Parameter, call_with, check_answers, declared

SEQUENCES = {("Compute_dims", "dims")}  # or a number; mpi4py itself wants `__index__` there


class Asked(Exception):
    """The value was converted."""


class Poison:
    """A number nobody gets. It has no `__index__`, as a float has none."""

    def __int__(self) -> int:
        raise Asked


PARAMETERS = [
    each for each in declared() if "int" in each.kinds and (each.method, each.name) not in SEQUENCES
]
CLASSES = sorted({each.owner for each in PARAMETERS})


def answer(call: Any, parameter: Parameter, comm: Any, value: Any) -> str:
    """What a call says to the value; nothing where it is what it has to say."""
    try:
        call_with(call, parameter, comm, value)
    except Asked:
        return ""
    except TypeError as problem:
        text = str(problem)
        return "" if isinstance(value, str) and text == "an integer is required" else text
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return "it was not looked at"


@pytest.mark.filterwarnings("ignore:the 'buf' argument is not used")
@pytest.mark.parametrize("value", [Poison(), "0"], ids=["number", "text"])
@pytest.mark.parametrize("owner", CLASSES, ids=lambda name: name or "MPI")
def test_it_is_converted(owner: str, value: Any, tmp_path: Path) -> None:
    def ask(call: Any, parameter: Parameter, comm: Any) -> str:
        return answer(call, parameter, comm, value)

    check_answers(owner, PARAMETERS, tmp_path, ask)


def test_there_are_many() -> None:
    assert len(PARAMETERS) > 250
