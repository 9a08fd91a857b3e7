"""Lesson 3, order: what MPI promises about the order of messages, and two ranks that wait for ever.

You learn: messages of a pair do not overtake each other; a tag takes one out of turn; a message
    waits in the queue of unexpected messages until its receive comes; two ranks that both receive
    first wait for ever.
Run: ompy-run -n 2 python examples/order.py
    ompy-run -n 2 python examples/order.py head-on
Change: receive tag 1 before tag 2. Then mend `head_on` in two ways: by order, and by sendrecv.
"""

# %% Pairs of ranks: 0 with 1, 2 with 3
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
partner = comm.rank ^ 1
first = comm.rank < partner < comm.size
second = partner < comm.rank

# %% In order, and out of turn
if first:
    for number in range(3):
        comm.send(f"piece {number}", dest=partner, tag=1)
    comm.send("urgent", dest=partner, tag=2)
if second:
    heard = [comm.recv(source=partner, tag=2)]  # it was sent last, and is taken first
    heard += [comm.recv(source=partner, tag=1) for _ in range(3)]
    assert heard == ["urgent", "piece 0", "piece 1", "piece 2"]


# %% Both wait for the other: this hangs, if it is called
def head_on():
    """Each rank of a pair receives before it sends."""
    word = comm.recv(source=partner, tag=3)
    comm.send("after you", dest=partner, tag=3)
    return word


if "head-on" in sys.argv:
    head_on()

# %% All are here
pairs = comm.reduce(int(first))
if comm.rank == 0:
    print(f"{pairs} pair(s): pieces in order, the urgent one before them")
