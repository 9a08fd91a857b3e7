"""Lesson 6, sharing work: rank 0 deals numbers out in shares, and gets the results in their order.

You learn: Scatterv and Gatherv move shares of different sizes; counts and displacements say which
    part is whose; equal shares are not equal work.
Run: ompy-run -n 4 python examples/shares.py
Change: print each rank's `work`. Then deal the numbers out like cards: how large is the largest?
"""

# %% Shares: the first ranks get one more where it does not come out even
from array import array

from mpi4py import MPI

NUMBERS = 1001

comm = MPI.COMM_WORLD
counts = [NUMBERS // comm.size + (rank < NUMBERS % comm.size) for rank in range(comm.size)]
places = [sum(counts[:rank]) for rank in range(comm.size)]

# %% Deal out
numbers = array("q", range(1, NUMBERS + 1)) if comm.rank == 0 else array("q")
mine = array("q", bytes(8 * counts[comm.rank]))
comm.Scatterv([numbers, counts, places, MPI.INT64_T] if comm.rank == 0 else None, mine, root=0)


# %% Work: how many steps of Collatz lead from a number to 1
def collatz(number):
    """Halve it if it is even, else three times and one more."""
    steps = 0
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps


results = array("q", map(collatz, mine))
work = sum(results)

# %% Collect
every = array("q", bytes(8 * NUMBERS)) if comm.rank == 0 else array("q")
comm.Gatherv(results, [every, counts, places, MPI.INT64_T] if comm.rank == 0 else None, root=0)
largest = comm.reduce(work, op=MPI.MAX)
if comm.rank == 0:
    assert list(every[:6]) == [0, 1, 7, 2, 5, 8]
    assert sum(every) == sum(map(collatz, range(1, NUMBERS + 1)))
    longest = max(every)
    fair = sum(every) / comm.size
    print(f"up to {longest} steps; the largest share is {largest / fair:.2f} of a fair one")
