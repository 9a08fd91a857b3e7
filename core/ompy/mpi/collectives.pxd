cimport cython

# compiled as it is: a class that users may inherit from
from ompy.mpi.collective_calls cimport barrier, broadcast, reduced
