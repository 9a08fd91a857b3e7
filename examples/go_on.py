"""Lesson 12, failure: a rank dies in the middle of the work, and the others go on without it.

You learn: with mpi_ft_enable the death of a rank is an error of a call, not the end of the job.
    Revoke wakes those who wait, Agree tells all the same, Shrink makes a communicator of survivors.
Run: ompy-run -n 4 --mca mpi_ft_enable 1 python examples/go_on.py die
Change: let two ranks die, in different rounds. Then let one die in the last round: why is there an
    Agree in each?
"""

# %% Rounds of work, and who dies in which
import os
import signal
import sys

from mpi4py import MPI

ROUNDS = 6
comm = MPI.COMM_WORLD
number = comm.rank  # it stays, whatever rank this process has later
dies = "die" in sys.argv and number == 1


# %% One round: every process adds its share
def one_round(turn):
    """The sum over all that are there."""
    if dies and turn == ROUNDS // 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return comm.allreduce(number + turn)


# %% Has everybody its result? All that live get the same answer
def agreed(well):
    """Whether all are well, and nobody has died."""
    try:
        return comm.Agree(well)
    except MPI.Exception:
        return False


# %% The survivors repeat the round in which somebody died
turn, sums = 0, []
while turn < ROUNDS:
    total = None
    try:
        total = one_round(turn)
    except MPI.Exception:
        comm.Revoke()  # who still waits in this round leaves it, too
    if agreed(total is not None):
        sums.append(total)
        turn += 1
    else:
        comm = comm.Shrink()

# %% What came of it
members = comm.allgather(number)
assert sums[-1] == sum(members) + len(members) * (ROUNDS - 1)
if comm.rank == 0:
    print(f"{ROUNDS} rounds, in the end by {len(members)} rank(s): {members}")
