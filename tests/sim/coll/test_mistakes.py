"""One member's arguments are wrong, and all go on: random jobs in the virtual world."""

from __future__ import annotations

from pathlib import Path

import pytest
from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.sim.coll.mistakes import STEPS, faults, outcome, plan, run_plan
from tests.support.effort import effort
from tests.support.worlds import virtual

WAYS = [
    {"btl": "self,sm"},
    {"btl": "self,sm", "coll_sm_fragment_size": "4096"},
    {"btl": "self,tcp"},
]
LENGTH = 14


@pytest.mark.parametrize("way", range(len(WAYS)))
@pytest.mark.parametrize("seed", range(effort(20)))
def test_random_jobs(seed: int, way: int, tmp_path: Path) -> None:
    """Nobody waits for ever, the others hear of it, and the next call is right at once."""
    ranks = 2 + seed % 3
    turns = plan(seed, ranks, LENGTH)

    def program(process: RankProcess) -> list[str]:
        return run_plan(world_of(process), turns, tmp_path / "file")

    outcomes = virtual(ranks, program, seed=seed, **WAYS[way]).results
    assert faults(turns, outcomes) == []


def test_the_jobs_have_mistakes_of_all_kinds() -> None:
    turns = [turn for seed in range(200) for turn in plan(seed, 2, LENGTH) if turn.who >= 0]
    assert {turn.name for turn in turns} == {name for name, step in STEPS.items() if step.wrong}


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_the_error_names_the_rank_and_the_call(wrong: int) -> None:
    """Memory is shared by then: what is shown there says so."""

    def program(process: RankProcess) -> str:
        comm = world_of(process)
        comm.Barrier()
        step = STEPS["Create_cart"]
        said = outcome(step.wrong[0] if comm.rank == wrong else step.right, comm)
        comm.Barrier()
        return said

    results = virtual(3, program, btl="self,sm").results
    assert results[wrong].startswith("MPI ")
    for rank, said in enumerate(results):
        if rank != wrong:
            assert said.startswith(f"MPI {MPI.ERR_OTHER}: ")
            assert f"rank {wrong}" in said
            assert "Create_cart" in said


def test_members_out_of_step_come_into_step_again() -> None:
    """They make different calls once: one call later at most all of them are right."""

    def program(process: RankProcess) -> list[str]:
        comm = world_of(process)
        allreduce, bcast = STEPS["Allreduce, large"].right, STEPS["Bcast, large"].right
        comm.Barrier()
        found = [outcome(bcast if comm.rank == 1 else allreduce, comm)]
        return found + [outcome(allreduce, comm) for _ in range(4)]

    results = virtual(3, program, btl="self,sm", coll_sm_fragment_size="4096").results
    for came in zip(*results, strict=True):
        assert all(said == "ok" or said.startswith("MPI") for said in came)
    assert {said for each in results for said in each[2:]} == {"ok"}


@pytest.mark.parametrize("btl", ["self,sm", "self,tcp"])
@pytest.mark.parametrize("wrong", [0, 3])
def test_some_members_wait_for_one_that_is_wrong(btl: str, wrong: int) -> None:
    """It does not know who waits for it, and answers who asks; the next call is right."""

    def program(process: RankProcess) -> list[str]:
        comm = world_of(process)
        group = comm.Get_group().Excl([1])
        found = []
        for turn in range(3):
            if comm.rank != 1:
                given = None if comm.rank == wrong and turn == 1 else group
                found.append(outcome(lambda given: comm.Create_group(given, 5).Free(), given))
            comm.Barrier()
        return found

    results = virtual(5, program, btl=btl).results
    assert results.pop(1) == []
    for first, second, third in results:
        assert (first, third) == ("ok", "ok")
        assert second.startswith(("TypeError", f"MPI {MPI.ERR_OTHER}: "))
        assert "Create_group" in second or "group" in second


@pytest.mark.parametrize("wrong", range(2))
def test_a_file_without_a_name_is_opened_by_nobody(wrong: int, tmp_path: Path) -> None:
    def program(process: RankProcess) -> str:
        comm = world_of(process)
        name = None if comm.rank == wrong else tmp_path / "file"
        said = outcome(
            lambda name: MPI.File.Open(comm, name, MPI.MODE_CREATE | MPI.MODE_RDWR), name
        )
        comm.Barrier()
        return said

    results = virtual(2, program, btl="self,sm").results
    assert results[wrong].startswith("TypeError")
    assert results[1 - wrong].startswith(f"MPI {MPI.ERR_BAD_FILE}: ")


def test_the_tag_of_a_group_is_a_text() -> None:
    def program(process: RankProcess) -> None:
        group = world_of(process).Get_group()
        with pytest.raises(TypeError, match="expecting a str, not int"):
            MPI.Intracomm.Create_from_group(group, 3)  # type: ignore[arg-type]

    virtual(2, program, btl="self,sm")
