"""Every rank says who and where it is."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
names = comm.gather(MPI.Get_processor_name())
print(f"Hello from rank {comm.rank} of {comm.size}", flush=True)
if comm.rank == 0:
    assert len(names) == comm.size
    print(f"{comm.size} ranks on {len(set(names))} host(s)", flush=True)
