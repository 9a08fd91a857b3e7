"""A distributed sort: samples choose the borders, alltoall brings everything home."""

import random
from itertools import chain

from mpi4py import MPI

comm = MPI.COMM_WORLD
dice = random.Random(99 + comm.rank)
numbers = [dice.randrange(10**6) for _ in range(2000)]
before = comm.allreduce(sum(numbers))

samples = sorted(chain.from_iterable(comm.allgather(sorted(numbers)[:: 2000 // comm.size])))
step = max(1, len(samples) // comm.size)
borders = samples[step::step][: comm.size - 1]
piles = [[] for _ in range(comm.size)]
for number in numbers:
    piles[sum(number >= border for border in borders)].append(number)
mine = sorted(chain.from_iterable(comm.alltoall(piles)))

assert comm.allreduce(sum(mine)) == before, "nothing was lost"
assert comm.allreduce(len(mine)) == 2000 * comm.size
edges = comm.allgather((mine[0], mine[-1]) if mine else None)
known = [edge for pair in edges if pair for edge in pair]
assert known == sorted(known), "every rank's numbers come before the next one's"
if comm.rank == 0:
    print(f"{2000 * comm.size} numbers sorted on {comm.size} rank(s)")
