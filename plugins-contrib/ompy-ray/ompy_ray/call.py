"""A rank that calls the function of `ompy_ray.run`: `python -m ompy_ray.call FOLDER`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import cloudpickle
from ompy import MPI

CALL = "call"  # the file with function and arguments
RESULTS = "results"


def main() -> None:
    """Rank 0 has the folder of the caller: take the function, call it on all, give back."""
    comm = MPI.COMM_WORLD
    folder = Path(sys.argv[1])
    sent = comm.bcast((folder / CALL).read_bytes() if comm.rank == 0 else b"")
    function, arguments = cloudpickle.loads(sent)
    returned = comm.gather(cloudpickle.dumps(function(*arguments)))
    if comm.rank == 0:
        assert returned is not None, "this is the root"
        results = cloudpickle.dumps([cloudpickle.loads(each) for each in returned])
        (folder / "new").write_bytes(results)
        os.replace(folder / "new", folder / RESULTS)


if __name__ == "__main__":
    main()
