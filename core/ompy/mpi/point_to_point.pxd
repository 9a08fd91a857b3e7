cimport cython

from ompy cimport raw
from ompy.data.convertor cimport Convertor
from ompy.data.request cimport Request as Operation
from ompy.mpi.handles cimport Handle
from ompy.mpi.request cimport request_of
from ompy.mpi.requeststate cimport nothing
from ompy.mpi.spec cimport recv_convertor, send_convertor
from ompy.mpi.state cimport CommState

# the module's constants, in C
cdef long long ANY_SOURCE
cdef long long ANY_TAG
cdef long long PROC_NULL
cdef long long TAG_UB
cdef long long BUFFERED
cdef long long READY
cdef long long STANDARD
cdef long long SYNCHRONOUS

cpdef Operation begin_send(CommState state, Convertor convertor, target, tag, int mode)
cpdef Operation begin_receive(CommState state, Convertor convertor, source, tag)
cpdef bint has_target(CommState state, target, tag) except -1
cpdef bint has_source(CommState state, source, tag) except -1
@cython.locals(state=CommState, target="long long", label="long long")
cpdef send_buffer(Handle comm, buf, dest, tag)
cpdef bint both_ints(one, other) except -1
@cython.locals(state=CommState, origin="long long", label="long long", done=Operation)
cpdef receive_buffer(Handle comm, buf, source, tag, status)
@cython.locals(state=CommState)
cpdef begin_send_buffer(Handle comm, buf, dest, tag, int mode)
@cython.locals(state=CommState)
cpdef begin_receive_buffer(Handle comm, buf, source, tag)
