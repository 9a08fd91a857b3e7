"""Dictionaries of megabytes travel as objects; the arrays in them are not copied into a pickle."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


def bundle(rank):
    """Something only this rank could have made."""
    return {
        "name": f"bundle of rank {rank}",
        "words": [f"word {index} of {rank}" for index in range(20_000)],
        "field": np.arange(500_000, dtype="d") + rank,
        "mask": np.arange(100_000) % (rank + 2) == 0,
        "nested": {"bytes": bytes([rank % 256]) * 1_000_000},
    }


request = comm.isend(bundle(comm.rank), dest=right)
got = comm.recv(source=left)
request.wait()
wanted = bundle(left)
assert got["name"] == wanted["name"]
assert got["words"] == wanted["words"]
assert (got["field"] == wanted["field"]).all()
assert (got["mask"] == wanted["mask"]).all()
assert got["nested"] == wanted["nested"]
got["field"][0] = -1.0  # what was received is ours to change

everything = comm.gather(got["name"], root=0)
if comm.rank == 0:
    assert sorted(everything) == sorted(f"bundle of rank {rank}" for rank in range(comm.size))
    print(f"{comm.size} bundle(s) of about 6 MB passed to the right")
