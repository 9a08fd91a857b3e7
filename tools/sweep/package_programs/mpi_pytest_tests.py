"""mpi-pytest: tests that say how many ranks they need, run by pytest on all ranks."""

import pytest
from mpi4py import MPI


@pytest.mark.parallel(3)
def test_all_have_the_sum():
    assert MPI.COMM_WORLD.size == 3
    assert MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank) == 3


@pytest.mark.parallel(nprocs=3)
@pytest.mark.parametrize("root", [0, 2])
def test_all_have_what_the_root_said(root):
    assert MPI.COMM_WORLD.bcast(MPI.COMM_WORLD.rank, root) == root
