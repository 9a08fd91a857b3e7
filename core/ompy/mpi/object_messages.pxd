cimport cython

from ompy cimport raw
from ompy.data.convertor cimport Convertor, GrowingConvertor
from ompy.data.request cimport Request as Operation
from ompy.mpi.objects cimport convertor_of
from ompy.mpi.state cimport CommState

# the module's constants, in C
cdef long long ANY_SOURCE
cdef long long ANY_TAG
cdef long long PROC_NULL
cdef long long TAG_UB
cdef long long BUFFERED
cdef long long STANDARD
cdef long long SYNCHRONOUS

@cython.locals(target="long long", label="long long")
cpdef send_object(CommState state, obj, dest, tag)
@cython.locals(origin="long long", label="long long", done=Operation, convertor=GrowingConvertor)
cpdef receive_object(CommState state, source, tag, status)
