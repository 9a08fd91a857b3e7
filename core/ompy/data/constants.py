"""Wildcards and marker values of MPI, with the numbers Open MPI gives them."""

from typing import Final

ANY_SOURCE: Final = -1  # Open MPI mpi.h
ANY_TAG: Final = -1  # Open MPI mpi.h
PROC_NULL: Final = -2  # Open MPI mpi.h
ROOT: Final = -4  # Open MPI mpi.h
UNDEFINED: Final = -32766  # Open MPI mpi.h
TAG_UB: Final = 2**31 - 1  # reference openmpi.md 3.4: max tag INT_MAX
LOWEST_TAG: Final = -(2**31)  # Open MPI: a tag has 32 bits; internal ones are below ANY_TAG
