"""PTMCMCSampler: parallel tempering, chains on ranks that swap."""

import tempfile

import numpy as np
from mpi4py import MPI
from PTMCMCSampler.PTMCMCSampler import PTSampler

comm = MPI.COMM_WORLD
folder = comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None)
sampler = PTSampler(
    2,
    lambda place: -0.5 * float(place @ place),
    lambda _place: 0.0,
    np.eye(2),
    comm=comm,
    outDir=folder,
    verbose=False,
    seed=11,
)
sampler.sample(np.zeros(2), 3000, burn=500, thin=1, isave=1000, covUpdate=500)
if comm.rank == 0:
    chain = np.loadtxt(f"{folder}/chain_1.0.txt")
    assert len(chain) >= 2000
    assert abs(chain[:, :2].mean()) < 0.5
    assert 0.5 < chain[:, :2].std() < 1.6
    print("fine")
