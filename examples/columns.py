"""Lesson 7, derived datatypes: columns of a matrix that lies in memory row by row.

You learn: a datatype says where elements are, so that nothing has to be copied together first;
    Create_vector takes every n-th element; Create_resized says where the next column begins.
Run: ompy-run -n 4 python examples/columns.py
Change: send two columns to each rank. Then leave out Create_resized: what is said, and why?
"""

# %% A matrix with a column for each rank, at rank 0
from array import array

from mpi4py import MPI

ROWS = 5

comm = MPI.COMM_WORLD
size = comm.size
matrix = array("d", range(ROWS * size)) if comm.rank == 0 else array("d")

# %% A column: ROWS elements, `size` apart; the next one begins one element further
column = MPI.DOUBLE.Create_vector(ROWS, 1, size)
dealt = column.Create_resized(0, MPI.DOUBLE.size).Commit()
column.Free()

# %% One column for each rank, which has it in one piece
mine = array("d", bytes(8 * ROWS))
comm.Scatter([matrix, 1, dealt] if comm.rank == 0 else None, mine, root=0)
assert list(mine) == [row * size + comm.rank for row in range(ROWS)]

# %% And back: each rank's numbers become a column of another matrix
doubled = array("d", (2 * number for number in mine))
back = array("d", bytes(8 * ROWS * size)) if comm.rank == 0 else array("d")
comm.Gather(doubled, [back, 1, dealt] if comm.rank == 0 else None, root=0)
dealt.Free()
if comm.rank == 0:
    assert list(back) == [2 * number for number in matrix]
    print(f"{size} columns of {ROWS} numbers went out and came back doubled")
