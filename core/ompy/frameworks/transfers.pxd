cimport cython

from ompy.frameworks.btl cimport BtlModule, CompletionCallback, Descriptor, Endpoint
from ompy.frameworks.registration cimport identity_of

# the module's constants, in C
cdef long long BAD_PARAM
cdef long long NOT_AVAILABLE
cdef long long REMOTE_READ
cdef long long REMOTE_WRITE

@cython.locals(made=Descriptor)
cdef Descriptor _descriptor(local, int flags, int order, CompletionCallback callback, context)
cpdef bint unsuitable(long long size, unsigned long long address, long long limit, long long alignment) except -1

cdef class RdmaModule(BtlModule):
    cdef int _begin(self, int access, Endpoint endpoint, Descriptor descriptor, remote_handle, unsigned long long offset) except? -99
    cpdef int transfer(self, int access, Endpoint endpoint, Descriptor descriptor, unsigned long long identity, unsigned long long offset) except? -99
