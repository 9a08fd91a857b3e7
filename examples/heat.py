"""Lesson 8, neighbours: heat spreads over a plate that the ranks share, until nothing changes.

You learn: a Cartesian grid knows the neighbours, and PROC_NULL where there is none; each rank has
    a border (halo) of its neighbours' points; a column of it is a derived datatype.
Run: ompy-run -n 4 python examples/heat.py
Change: make the western edge hot, too. Then look only every tenth turn whether anything changes:
    how many messages does a trace have less?
"""

# %% A grid of ranks, each with SIDE x SIDE points and a border around them
from array import array
from itertools import pairwise

from mpi4py import MPI

SIDE = 6  # points of each rank, in each direction
WIDE = SIDE + 2  # with the border
HOT = 100.0

comm = MPI.COMM_WORLD
dims = MPI.Compute_dims(comm.size, 2)
grid = comm.Create_cart(dims, periods=[False, False])
row, column = grid.Get_coords(grid.rank)
north, south = grid.Shift(0, 1)
west, east = grid.Shift(1, 1)

plate = array("d", bytes(8 * WIDE * WIDE))
if row == 0:
    plate[:WIDE] = array("d", [HOT]) * WIDE  # the northern edge of the whole plate

# %% Rows lie in one piece, columns do not
across = MPI.DOUBLE.Create_contiguous(SIDE).Commit()
down = MPI.DOUBLE.Create_vector(SIDE, 1, WIDE).Commit()


def piece(y, x, kind):
    """A row or column of the plate from a point on, as MPI takes it."""
    return [memoryview(plate)[y * WIDE + x :], 1, kind]


def exchange():
    """Give the neighbours our outermost points and take theirs; at an edge there is nobody."""
    inner = SIDE  # the last row or column that is our own
    for target, source, kind, out, into in (
        (south, north, across, (inner, 1), (0, 1)),
        (north, south, across, (1, 1), (inner + 1, 1)),
        (east, west, down, (1, inner), (1, 0)),
        (west, east, down, (1, 1), (1, inner + 1)),
    ):
        grid.Sendrecv(piece(*out, kind), target, recvbuf=piece(*into, kind), source=source)


# %% Each point becomes the mean of its four neighbours
def relaxed():
    """The plate one turn later, and the largest change."""
    new, change = array("d", plate), 0.0
    for y in range(1, SIDE + 1):
        for at in range(y * WIDE + 1, y * WIDE + 1 + SIDE):
            new[at] = (plate[at - WIDE] + plate[at + WIDE] + plate[at - 1] + plate[at + 1]) / 4
            change = max(change, abs(new[at] - plate[at]))
    return new, change


change, turns = 1.0, 0
while change > 1e-2 and turns < 2000:
    exchange()
    plate, mine = relaxed()
    change = grid.allreduce(mine, op=MPI.MAX)
    turns += 1

# %% The mean of each row of the plate: it cools towards the south
rows = [sum(plate[y * WIDE + 1 : y * WIDE + 1 + SIDE]) for y in range(1, SIDE + 1)]
parts = grid.gather((row, rows), root=0)
if grid.rank == 0:
    sums = [0.0] * (dims[0] * SIDE)
    for part, values in parts:
        for y, value in enumerate(values, part * SIDE):
            sums[y] += value
    means = [value / (dims[1] * SIDE) for value in sums]
    assert all(upper > lower for upper, lower in pairwise(means)), means
    print(
        f"{dims[0]} x {dims[1]} ranks, settled after {turns} turns, "
        f"rows from {means[0]:.1f} to {means[-1]:.1f} degrees"
    )
across.Free()
down.Free()
grid.Free()
