"""Heat spreads over a plate that the ranks share as a Cartesian grid, until nothing changes."""

import numpy as np
from mpi4py import MPI

SIDE = 8  # points of each rank, in each direction

comm = MPI.COMM_WORLD
dims = MPI.Compute_dims(comm.size, 2)
grid = comm.Create_cart(dims, periods=[False, False])
row, column = grid.Get_coords(grid.rank)
north, south = grid.Shift(0, 1)
west, east = grid.Shift(1, 1)

plate = np.zeros((SIDE + 2, SIDE + 2))
if row == 0:
    plate[0, :] = 100.0  # the northern edge of the whole plate is hot


def exchange():
    """Give the neighbours our outermost points and take theirs; at an edge there is nobody."""
    for target, source, out, into in (
        (south, north, plate[-2, 1:-1], plate[0, 1:-1]),
        (north, south, plate[1, 1:-1], plate[-1, 1:-1]),
        (east, west, plate[1:-1, -2], plate[1:-1, 0]),
        (west, east, plate[1:-1, 1], plate[1:-1, -1]),
    ):
        arrived = np.empty(SIDE)
        grid.Sendrecv(np.ascontiguousarray(out), dest=target, recvbuf=arrived, source=source)
        if source != MPI.PROC_NULL:
            into[:] = arrived


change, turns = 1.0, 0
while change > 1e-4 and turns < 4000:
    exchange()
    new = 0.25 * (plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:])
    change = grid.allreduce(float(np.abs(new - plate[1:-1, 1:-1]).max()), op=MPI.MAX)
    plate[1:-1, 1:-1] = new
    turns += 1

parts = grid.gather((row, column, plate[1:-1, 1:-1].copy()), root=0)
if grid.rank == 0:
    whole = np.zeros((dims[0] * SIDE, dims[1] * SIDE))
    for down, across, part in parts:
        whole[down * SIDE : (down + 1) * SIDE, across * SIDE : (across + 1) * SIDE] = part
    assert np.allclose(whole, whole[:, ::-1], atol=1e-2), "the plate is symmetric"
    assert (np.diff(whole[:, 0]) < 1e-9).all(), "it cools towards the south"
    print(f"{dims[0]} x {dims[1]} ranks, settled after {turns} turns, mean {whole.mean():.2f}")
grid.Free()
