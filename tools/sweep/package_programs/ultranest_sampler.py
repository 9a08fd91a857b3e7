"""UltraNest: nested sampling that finds the ranks of the job by itself."""

import numpy as np
import ultranest
from mpi4py import MPI


def log_likelihood(places):
    return -0.5 * np.sum((places / 0.1) ** 2, axis=1)


sampler = ultranest.ReactiveNestedSampler(
    ["a", "b"], log_likelihood, lambda cube: cube * 2 - 1, vectorized=True
)
result = sampler.run(
    min_num_live_points=100, dlogz=1, viz_callback=False, show_status=False, min_ess=100
)
assert abs(result["logz"] - np.log(2 * np.pi * 0.01 / 4)) < 1.0, result["logz"]
assert len(set(MPI.COMM_WORLD.allgather(result["logz"]))) == 1
if MPI.COMM_WORLD.rank == 0:
    print("fine")
