"""Every name of a collective call is understood, and what is said of its form is what is done."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from ompy.cli.explaining import explain_collective as explaining
from ompy.cli.explaining.explain import explain
from ompy.cli.explaining.explain_collective import Asked
from ompy.cli.explaining.explain_names import (
    CALLS,
    NONBLOCKING,
    PERSISTENT,
    SERVED,
    find_collective,
)
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.mpi.communicators.cartesian import Cartcomm

from tests.support.effort import THOROUGH

BTLS = ("self,sm", "self,tcp")
SIZES = (8, 200 * 1024, 8 << 20) if THOROUGH else (8,)
FEW = {f"i{operation}" for operation in SERVED} | {"allreduce_init", "neighbor_alltoall_init"}
FORMS = [
    call
    for call in CALLS.values()
    if call.form != "blocking" and (THOROUGH or call.call.lower() in FEW)
]


def test_every_collective_of_the_api_has_an_operation() -> None:
    """Those of buffers; the calls of mpi4py are the list."""
    words = ("barrier", "bcast", "gather", "scatter", "alltoall", "reduce", "scan")
    named = {
        name
        for name in dir(Cartcomm)
        if name[0].isupper() and name in KINDS and any(word in name.lower() for word in words)
    }
    assert named == {call.call for call in CALLS.values()}
    assert {call.operation for call in CALLS.values()} == set(SERVED)


@pytest.mark.parametrize(
    ("word", "call", "operation"),
    [
        ("allreduce", "Allreduce", "allreduce"),
        ("MPI_Iallreduce", "Iallreduce", "allreduce"),
        ("Comm.Allreduce_init", "Allreduce_init", "allreduce"),
        ("MPIX_Allreduce_init", "Allreduce_init", "allreduce"),
        ("MPI.COMM_WORLD.Igatherv", "Igatherv", "gather"),
        ("IREDUCE_SCATTER_BLOCK", "Ireduce_scatter_block", "reduce_scatter"),
        ("ineighbour-alltoallw", "Ineighbor_alltoallw", "neighbor_alltoall"),
        ("exscan", "Exscan", "exscan"),
    ],
)
def test_names_people_type(word: str, call: str, operation: str) -> None:
    found = find_collective(word)
    assert (found.call, found.operation) == (call, operation)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("ialreduce", "did you mean Iallreduce?"),
        ("MPI_Issend", "--mode sync"),
        ("Send_init", "--mode standard"),
        ("mrecv", "one message"),
        ("rget_accumulate", "of windows"),
        ("Idup", "there is no collective call Idup"),
    ],
)
def test_other_names_are_answered(word: str, said: str) -> None:
    answer = CliRunner().invoke(explain, [word, "--size", "8"])
    assert answer.exit_code == 2
    assert said in answer.output


@pytest.mark.parametrize("btl", BTLS)
@pytest.mark.parametrize("called", FORMS, ids=lambda called: called.call)
def test_a_form_does_what_it_says(called: object, btl: str) -> None:
    """The answer's component and algorithm are among those that the trace of the call names."""
    for size in SIZES:
        asked = Asked(called.operation, size, 3, 1, 0, False, called.form, called.call)
        found = explaining.explain_collective(asked, [("btl", btl)])
        assert found["title"].startswith(called.call)
        assert found["component"] == (
            "sm" if found["algorithm"] == "nonblocking" else serving(found)
        )
        assert found["steps"] or btl == "self,sm"
        if btl == "self,tcp":
            assert found["algorithm"] != "nonblocking"
            assert all("way of its own" not in part["text"] for part in found["branches"])


def serving(found: dict) -> str:
    """The first component that has the operation in steps."""
    names = [each["component"] for each in found["components"] if each["component"] != "sm"]
    lacking = {"lacks it", "not available"}
    have = [e["component"] for e in found["components"] if e["verdict"] not in lacking]
    return next((name for name in names if name in have), "framework")


def test_a_persistent_call_takes_the_steps_of_one_start() -> None:
    """It is started three times under one tag: the steps are those of the last start alone."""
    once, again = (
        explaining.explain_collective(
            Asked("bcast", 1000, 5, 2, 0, False, form), [("btl", "self,tcp")]
        )
        for form in (NONBLOCKING, PERSISTENT)
    )
    assert once["steps"] == again["steps"]
    assert once["steps"][0] == "as 4 messages"


def test_what_has_no_room_in_memory_is_handed_on() -> None:
    asked = Asked("allreduce", 8 << 20, 2, 1, 0, False, NONBLOCKING)
    settings = [("btl", "self,sm"), ("coll_sm_single_copy", "0")]
    found = explaining.explain_collective(asked, settings)
    assert (found["component"], found["algorithm"]) == ("tuned", "rabenseifner")
    assert "handed it on" in found["branches"][0]["text"]
