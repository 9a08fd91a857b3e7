"""IN_PLACE with a datatype means what it means alone, and where it means nothing it is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import virtual

FORMS = {
    "typed": [MPI.IN_PLACE, MPI.INT],
    "counted": [MPI.IN_PLACE, 0, MPI.INT],
    "without a type": (MPI.IN_PLACE, 0, MPI.DATATYPE_NULL),
    "of nothing": [MPI.IN_PLACE, None],
}
SENT = ["Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Allreduce", "Scan", "Exscan"]
SENT += ["Reduce_scatter_block", "Reduce_scatter"]
ROOTED = ["Gather", "Gatherv", "Reduce", "Scatter", "Scatterv"]
WRONG = ["Bcast", "Send", "Recv", "Isend", "Irecv", "Send_init", "Sendrecv_replace"]


def made(comm: Any, name: str, *given: Any) -> None:
    """Make a call, and wait for it where there is something to wait for."""
    request = getattr(comm, name)(*given)
    if request is not None:
        if name.endswith("_init"):
            request.Start()
        request.Wait()


def names_of(name: str) -> list[str]:
    return [name, f"I{name.lower()}", f"{name}_init"]


def results(comm: Any, name: str, spec: Any) -> list[int]:
    """What a member has after a call whose data are said to be in place."""
    data = np.arange(4, dtype="i") + 10 * comm.rank
    if name in ROOTED:
        part = data if name == "Reduce" else data[:2]
        scatter = name.startswith("Scatter")
        if comm.rank == 0:
            given = (data, spec) if scatter else (spec, data)
        else:
            given = (None, part) if scatter else (part, None)
        getattr(comm, name)(*given)
    else:
        made(comm, name, spec, data)
    return list(data.tolist())


@pytest.mark.parametrize("form", FORMS)
def test_it_is_in_place(form: str) -> None:
    def program(process: RankProcess) -> dict[str, tuple[list[int], list[int]]]:
        comm = world_of(process)
        names = [*ROOTED, *(each for stem in SENT for each in names_of(stem))]
        both = {}
        for name in names:
            alone = results(comm, name, MPI.IN_PLACE)
            both[name] = alone, results(comm, name, FORMS[form])
        return both

    for found in virtual(2, program).results:
        assert len(found) > 30  # type: ignore[arg-type]
        for name, (alone, typed) in found.items():  # type: ignore[attr-defined]
            assert typed == alone, name


@pytest.mark.parametrize("form", [MPI.IN_PLACE, *FORMS.values()], ids=["alone", *FORMS])
def test_it_is_refused(form: Any) -> None:
    def program(process: RankProcess) -> set[int]:
        comm = world_of(process)
        classes = set()
        for name in WRONG:
            with pytest.raises(MPI.Exception, match="IN_PLACE") as caught:
                getattr(comm, name)(form, 0)
            classes.add(caught.value.Get_error_class())
        return classes

    assert virtual(1, program).results == [{MPI.ERR_ARG}]


@pytest.mark.parametrize("name", ["Allgather", "Allgatherv", "Gather", "Alltoall", "Alltoallv"])
def test_room_beyond_what_comes_is_left_alone(name: str) -> None:
    def program(process: RankProcess) -> list[int]:
        data = np.arange(8, dtype="i")
        getattr(world_of(process), name)(np.array([70, 71], "i"), data)
        return list(data.tolist())

    assert virtual(1, program).results == [[70, 71, 2, 3, 4, 5, 6, 7]]
