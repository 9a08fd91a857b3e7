"""Lesson 1, ranks: one program runs many times, and each copy knows which one it is.

You learn: what a rank and a communicator are, and that lines of ranks come in no order.
Run: ompy-run -n 4 python examples/hello.py
Change: let only odd ranks print. Then gather `comm.rank ** 2` as well, and print the sum at rank 0.
"""

# %% Who am I?
from mpi4py import MPI

comm = MPI.COMM_WORLD
print(f"Hello from rank {comm.rank} of {comm.size}", flush=True)

# %% All tell rank 0 where they are
names = comm.gather(MPI.Get_processor_name())
if comm.rank == 0:
    assert len(names) == comm.size
    print(f"{comm.size} ranks on {len(set(names))} host(s)", flush=True)
