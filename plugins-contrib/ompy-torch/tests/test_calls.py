"""What gloo has not, mistakes, and where ranks come from."""

from __future__ import annotations

import pytest
from conftest import Run, needs_torch

pytestmark = needs_torch


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_what_gloo_has_not(job: Run, ranks: int) -> None:
    assert job(ranks, "beyond_gloo.py").stdout == "as they must be\n"


def test_mistakes_are_explained_before_anything_is_sent(job: Run) -> None:
    found = dict(line.split(": ", 1) for line in job(2, "mistakes.py", "local").stdout.splitlines())
    for mistake, said in (
        ("device", "all_reduce: a tensor is on meta; the back end ompy takes tensors on the CPU"),
        ("operation", "all_reduce: the back end ompy has no BAND of torch.float32"),
        ("numbers", "all_reduce: the back end ompy has no AVG of torch.int32"),
        ("parts", "all_gather: 3 tensors for 2 ranks"),
        ("whole", "all_gather_into_tensor: a tensor has 5 elements where 6 belong"),
        ("splits", "all_to_all_single: parts [1, 1] of 4 rows for 2 ranks"),
        ("options", "pg_options: the back end ompy has no options"),
    ):
        assert found[mistake].startswith(said), found


def test_shapes_that_differ_are_an_error(job: Run) -> None:
    said = job(2, "mistakes.py", "shapes", code=1).stderr
    assert "DistBackendError: all_reduce: MPI_ERR_TRUNCATE" in said


def test_calls_that_differ_are_named_on_demand(job: Run) -> None:
    said = job(2, "mistakes.py", "shapes", code=1, TORCH_DISTRIBUTED_DEBUG="DETAIL").stderr
    assert "rank 0: all_reduce(SUM, float32[3]); rank 1: all_reduce(SUM, float32[4])" in said


def test_a_message_that_is_too_long_is_an_error(job: Run) -> None:
    said = job(2, "mistakes.py", "truncated", code=1).stderr
    assert "DistBackendError: recv: MPI_ERR_TRUNCATE" in said


def test_a_call_that_others_do_not_make_ends_in_time(job: Run) -> None:
    said = job(2, "mistakes.py", "late", code=1).stderr
    assert "DistBackendError: all_reduce: not over after 2 s" in said


def test_a_rank_that_dies_ends_the_job(job: Run) -> None:
    done = job(3, "mistakes.py", "death", code=137)
    assert "Rank 1" in done.stderr
    assert "SIGKILL" in done.stderr


def test_a_rank_that_dies_is_an_error_for_those_who_go_on(job: Run) -> None:
    done = job(3, "mistakes.py", "death", options=("--mca", "mpi_ft_enable", "1"))
    assert done.stdout.count("all_reduce: MPI_ERR_PROC_FAILED") == 2


def test_ranks_come_from_the_job(job: Run) -> None:
    for method in ("", "ompy://"):
        said = job(2, "start.py", method).stdout.splitlines()
        assert sorted(said) == ["rank 0 of 2: 3 by ompy", "rank 1 of 2: 3 by ompy"]


def test_ranks_come_from_torchrun(torchrun: Run) -> None:
    done = torchrun(2, "start.py", "")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["rank 0 of 2: 3 by ompy", "rank 1 of 2: 3 by ompy"]


def test_two_launchers_at_once_are_an_error(job: Run) -> None:
    said = job(
        2, "start.py", "", code=1, WORLD_SIZE="8", MASTER_ADDR="localhost", MASTER_PORT="9"
    ).stderr
    assert "the variable WORLD_SIZE is 8, but this process is rank " in said
    assert "start the program with one launcher alone" in said
