from ompy.engine.base cimport Engine
from ompy.mpi.requeststate cimport RequestState
cimport cython

cpdef wait_for(RequestState state)
cpdef bint poll(RequestState state) except -1
