"""dask-mpi: rank 0 is the scheduler, rank 1 the client, the others are workers."""

from dask.distributed import Client
from dask_mpi import initialize

if __name__ == "__main__":
    initialize(nthreads=1, exit=True)
    with Client() as client:
        assert sum(client.gather(client.map(lambda x: x * x, range(30)))) == 8555
        print("fine", flush=True)
