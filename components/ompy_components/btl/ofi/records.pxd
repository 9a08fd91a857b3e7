cimport cython

from ompy.frameworks.btl cimport CompletionCallback, Descriptor
from ompy_components.btl.ofi.endpoint cimport OfiEndpoint

# the module's constants, in C
cdef long long HEADER_SIZE
cdef long long _FRAGMENT
cdef long long _KEPT_MAX

cdef class OfiFragment(Descriptor):
    cdef public bint acknowledged
    cdef public OfiEndpoint endpoint
    cdef public bint freed
    cdef public bint immediate
    cdef public int kind
    cdef public object message
    cdef public long long number
    cdef public bint posted
    cdef public bint told
    cpdef begin(self, message, int flags, int order)

cdef class Operation(Descriptor):
    cdef public OfiEndpoint endpoint
    cdef public bint told
    cdef public tuple words
    cpdef begin(self, OfiEndpoint endpoint, local, int flags, int order)

cdef class ReceiveBuffer:
    cdef public long long filled
    cdef public object memory

cdef class MessagePool:
    cdef list _free
    cdef long long _largest
    cdef long long _small
    cpdef take(self, long long size)
    cpdef give_back(self, memory)

@cython.locals(made=OfiFragment)
cpdef OfiFragment fragment_in(message, int flags, int order)
@cython.locals(made=Operation)
cpdef Operation operation_on(OfiEndpoint endpoint, local, int flags, int order, CompletionCallback callback, context)
