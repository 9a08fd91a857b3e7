cimport cython

from ompy.data.message cimport Message
from ompy.frameworks.call_order cimport detail_of
from ompy.mpi.spec cimport plain
from ompy.mpi.state cimport CommState

# the module's constants, in C
cdef long long BARRIER
cdef long long BCAST
cdef long long REDUCE
cdef long long ALLREDUCE

cpdef bint in_place(spec) except -1
cpdef barrier(CommState state)
@cython.locals(both=Message)
cpdef bint broadcast(CommState state, buf, root) except -1
@cython.locals(send=Message, receive=Message)
cpdef bint reduced(CommState state, sendbuf, recvbuf, op, root) except -1
