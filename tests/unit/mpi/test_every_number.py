"""A number beyond 64 bits is refused by every parameter that is an integer, by a clear error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.support.api_parameters import Parameter, call_with, check_answers, declared
from tests.support.worlds import virtual

PARAMETERS = [each for each in declared() if "int" in each.kinds]
CLASSES = sorted({each.owner for each in PARAMETERS})


def answer(call: Any, parameter: Parameter, comm: Any, value: int) -> str:
    """What a call says to the value; nothing where it refuses it."""
    try:
        call_with(call, parameter, comm, value)
    except (OverflowError, ValueError, MPI.Exception):
        return ""
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return "it was taken"


@pytest.mark.filterwarnings("ignore:the 'buf' argument is not used")
@pytest.mark.parametrize("value", [1 << 64, -(1 << 64)], ids=["large", "small"])
@pytest.mark.parametrize("owner", CLASSES, ids=lambda name: name or "MPI")
def test_it_is_refused(owner: str, value: int, tmp_path: Path) -> None:
    def ask(call: Any, parameter: Parameter, comm: Any) -> str:
        return answer(call, parameter, comm, value)

    check_answers(owner, PARAMETERS, tmp_path, ask)


def test_there_are_many() -> None:
    assert len(PARAMETERS) > 250


SEQUENCES = {
    "Create_indexed": ((), ()), "Create_hindexed": ((), ()), "Create_subarray": ((2,), (1,), (0,)),
    "Create_indexed_block": (1, ()), "Create_hindexed_block": (1, ()),
}  # fmt: skip


@pytest.mark.parametrize("name", SEQUENCES)
def test_numbers_of_datatypes(name: str) -> None:
    """No fraction, no number beyond 64 bits, and nothing without an order."""
    given = SEQUENCES[name]
    for place, each in enumerate(given):
        for wrong in ([0.5], {0}, {0: 0}, [1 << 63], [-(1 << 63) - 1], ["0"], [None]):
            if isinstance(each, tuple):
                others = [[0] if isinstance(other, tuple) else other for other in given]
                others[place] = wrong
                with pytest.raises((TypeError, OverflowError)):
                    getattr(MPI.INT, name)(*others)


@pytest.mark.parametrize("name", ["source", "tag", "error", "count"])
def test_numbers_of_a_status(name: str) -> None:
    status = MPI.Status()
    for wrong in (1 << 63, "1", None, float("nan")):
        with pytest.raises((TypeError, OverflowError, ValueError)):
            setattr(status, name, wrong)
    for fitting in (3, 3.5, True):
        setattr(status, name, fitting)
        assert getattr(status, name) == int(fitting)
        assert type(getattr(status, name)) is int


@pytest.mark.parametrize("name", ["source", "tag", "error"])
def test_a_c_int_has_32_bits(name: str) -> None:
    with pytest.raises(OverflowError, match="32 bits"):
        setattr(MPI.Status(), name, 1 << 31)
    setattr(MPI.Status(), name, -(1 << 31))


def test_a_length_is_not_negative() -> None:
    status = MPI.Status()
    for call in (lambda: setattr(status, "count", -1), lambda: status.Set_elements(MPI.INT, -1)):
        with pytest.raises(MPI.Exception, match="negative") as caught:
            call()
        assert caught.value.Get_error_class() == MPI.ERR_COUNT


@pytest.mark.parametrize("tag", [-1, MPI.ANY_TAG, MPI.PROC_NULL])
def test_tags_of_communicators_to_be(tag: int) -> None:
    def program(process: RankProcess) -> list[int]:
        comm = world_of(process)
        found = []
        for call in (
            lambda: comm.Create_group(comm.group, tag),
            lambda: comm.Create_intercomm(0, comm, 0, tag),
        ):
            with pytest.raises(MPI.Exception) as caught:
                call()
            found.append(caught.value.Get_error_class())
        return found

    assert virtual(1, program).results == [[MPI.ERR_TAG] * 2]


@pytest.mark.parametrize("bounds", [(0, 1 << 62), (-(1 << 62), 0), (4, 4), (-1, -1)])
def test_partitions_that_do_not_exist(bounds: tuple[int, int]) -> None:
    def program(process: RankProcess) -> int:
        request = world_of(process).Psend_init(bytearray(8), 4, MPI.PROC_NULL)
        request.Start()
        with pytest.raises(MPI.Exception, match="does not exist") as caught:
            request.Pready_range(*bounds)
        request.Pready_range(0, 3)
        request.Wait()
        return int(caught.value.Get_error_class())

    assert virtual(1, program).results == [MPI.ERR_ARG]
