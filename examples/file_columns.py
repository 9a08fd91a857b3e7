"""Lesson 11, files: a matrix in a file; all write it together, a column each, and read it by rows.

You learn: a view says which numbers of a file are a rank's; a collective write lets ompy put the
    pieces of all ranks together; if the disk is full, every rank is told.
Run: ompy-run -n 4 python examples/file_columns.py
Change: let each rank have two columns. Then write without a view, by Write_at: how many calls are
    that?
"""

# %% One file, and whose number is where
import os
import sys
import tempfile
from array import array

from mpi4py import MPI

ROWS = 1000
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size

path = comm.bcast(os.path.join(tempfile.gettempdir(), f"columns-{os.getpid()}.bin"), 0)
column = MPI.DOUBLE.Create_vector(ROWS, 1, size).Commit()
mode = MPI.MODE_RDWR | MPI.MODE_CREATE | MPI.MODE_DELETE_ON_CLOSE
file = MPI.File.Open(comm, path, mode)
file.Set_view(rank * MPI.DOUBLE.size, MPI.DOUBLE, column)
column.Free()  # the view keeps what it needs of it

# %% All write
try:
    file.Write_all(array("d", [100 * row + rank for row in range(ROWS)]))
except MPI.Exception as problem:
    file.Close()
    sys.exit(f"rank {rank}: {problem}" if rank == 0 else 0)
file.Sync()

# %% Each reads rows, with numbers of all
file.Set_view(0, MPI.DOUBLE)
mine = range(rank, ROWS, size)
for row in mine:
    values = array("d", [0.0]) * size
    file.Read_at(row * size, values)
    assert list(values) == [100 * row + other for other in range(size)], (row, values)
rows = comm.reduce(len(mine))
file.Close()
if rank == 0:
    assert rows == ROWS
    print(f"{ROWS} rows of {size} columns are right")
