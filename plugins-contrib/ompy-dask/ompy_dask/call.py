"""A rank that calls the function of `ompy_dask.run`: `python -m ompy_dask.call MARK`."""

from __future__ import annotations

import base64
import sys

import cloudpickle
from ompy import MPI


def main() -> None:
    """Take the function from rank 0's standard input, call it, and give back what it returns."""
    mark = sys.argv[1]
    comm = MPI.COMM_WORLD
    sent = comm.bcast(sys.stdin.buffer.read() if comm.rank == 0 else b"")
    function, arguments = cloudpickle.loads(sent)
    returned = comm.gather(cloudpickle.dumps(function(*arguments))) or []
    if comm.rank == 0:
        results = cloudpickle.dumps([cloudpickle.loads(each) for each in returned])
        sys.stdout.flush()
        # after what the function may have written without an end of line
        print(mark + base64.b64encode(results).decode(), flush=True)


if __name__ == "__main__":
    main()
