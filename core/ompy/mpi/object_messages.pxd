cimport cython

from ompy cimport raw
from ompy.data.convertor cimport Convertor, GrowingConvertor
from ompy.data.request cimport Request as Operation
from ompy.mpi.handles cimport Handle
from ompy.mpi.objects cimport Pickle, convertor_of
from ompy.mpi.point_to_point cimport both_ints
from ompy.mpi.state cimport CommState

# the module's constants, in C
cdef long long ANY_SOURCE
cdef long long ANY_TAG
cdef long long PROC_NULL
cdef long long TAG_UB
cdef long long BUFFERED
cdef long long STANDARD
cdef long long SYNCHRONOUS

@cython.locals(state=CommState, codec=Pickle, target="long long", label="long long")
cpdef send_object(Handle comm, obj, dest, tag)
@cython.locals(state=CommState, origin="long long", label="long long", codec=Pickle, done=Operation, convertor=GrowingConvertor)
cpdef receive_object(Handle comm, source, tag, status)
