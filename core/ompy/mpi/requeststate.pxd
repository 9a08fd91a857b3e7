cimport cython

from ompy.data.request cimport Request
from ompy.mpi.handles cimport State
from ompy.mpi.state cimport CommState

# the module's constants, in C
cdef long long ANY_TAG
cdef long long PROC_NULL
cdef long long ERR_REQUEST

cdef class RequestState(State):
    cdef public CommState comm
    cdef public object world
    cdef public Request operation
    cdef public object keep
    cdef public bint receives
    cdef public bint watched
    cpdef result(self, status)
    cpdef value(self)
    cpdef fill(self, status)

cpdef Request nothing()
@cython.locals(made=RequestState)
cpdef RequestState request_state(CommState comm, Request operation, keep, bint receives)
