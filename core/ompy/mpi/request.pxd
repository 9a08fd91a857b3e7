cimport cython

from ompy cimport raw
from ompy.data.request cimport Request as Operation
from ompy.mpi.completion cimport wait_for
from ompy.mpi.handles cimport Handle
from ompy.mpi.requeststate cimport RequestState, request_state
from ompy.mpi.state cimport CommState

# the module's constants, in C
cdef long long UNDEFINED
cdef long long ERR_IN_STATUS
cdef long long ERR_REQUEST

@cython.locals(made=Handle)
cpdef request_of(CommState comm, Operation operation, keep, bint receives)
@cython.locals(handle=Handle, state=RequestState)
cpdef bint settled(requests) except -1
