"""A parameter that is a handle or a status refuses what is none, before anything is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.support.api_parameters import Parameter, call_with, declared, owner_of
from tests.support.worlds import virtual

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
    def program(process: RankProcess) -> dict[str, str]:
        comm = world_of(process).Dup()
        comm.Set_errhandler(MPI.ERRORS_RETURN)
        target = owner_of(owner, comm, tmp_path)
        return {
            f"{owner}.{each.method}({each.name})": answer(getattr(target, each.method), each, comm)
            for each in PARAMETERS
            if each.owner == owner
        }

    (said,) = virtual(1, program).results  # type: ignore[attr-defined]
    assert said
    assert {call: why for call, why in said.items() if why} == {}


def test_there_are_many() -> None:
    assert len(PARAMETERS) > 150
