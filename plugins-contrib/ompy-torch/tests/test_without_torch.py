"""What this distribution does to those who did not ask for it: nothing."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

from conftest import TORCH_IS_HERE

RUN = str(Path(sys.executable).parent / "ompy-run")


def test_torch_is_told_where_to_find_it() -> None:
    found = [point.value for point in entry_points(group="torch.backends") if point.name == "ompy"]
    assert found == ["ompy_torch:register"]


def test_a_job_that_does_not_use_torch_is_as_ever() -> None:
    program = (
        "import sys\nfrom mpi4py import MPI\n"
        "print(MPI.COMM_WORLD.allreduce(1), sorted({'torch', 'ompy_torch'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [RUN, "-n", "2", sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "2 []\n" * 2


def test_without_torch_it_says_what_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import ompy_torch"], capture_output=True, text=True, check=False
    )
    if TORCH_IS_HERE:
        assert done.returncode == 0
    else:
        assert "No module named 'torch'" in done.stderr
