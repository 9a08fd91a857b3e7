"""A rank that calls the function of `ompy_ray.run`: `python -m ompy_ray.call MARK`."""

from __future__ import annotations

import base64
import sys

import cloudpickle
from ompy import MPI


def main() -> None:
    """Rank 0 has the function on its standard input: call it on all, and give back what came."""
    mark, comm = sys.argv[1], MPI.COMM_WORLD
    sent = comm.bcast(sys.stdin.buffer.read() if comm.rank == 0 else b"")
    function, arguments = cloudpickle.loads(sent)
    returned = comm.gather(cloudpickle.dumps(function(*arguments)))
    if comm.rank == 0:
        assert returned is not None, "this is the root"
        results = cloudpickle.dumps([cloudpickle.loads(each) for each in returned])
        sys.stdout.flush()
        # behind whatever the function may have written without an end of line
        print(mark + base64.b64encode(results).decode(), flush=True)


if __name__ == "__main__":
    main()
