cimport cython

from ompy cimport raw
from ompy.data.convertor cimport Convertor
from ompy.frameworks.btl cimport Descriptor, Endpoint, ReceiveCallback
from ompy.frameworks.transfers cimport RdmaModule

# the module's constants, in C
cdef long long BAD_PARAM
cdef long long COMPLETED
cdef long long GET
cdef long long PUT
cdef long long QUEUED
cdef long long RDMA_COMPLETION
cdef long long REMOTE_WRITE
cdef long long SEND
cdef long long HANDLE_SIZE
cdef long long DELIVERIES_PER_POLL

cdef class SelfModule(RdmaModule):
    cdef Endpoint _endpoint
    cdef list _handlers
    cdef object _queue
    cdef public object registered
    @cython.locals(begin=Py_ssize_t, descriptor=Descriptor)
    cpdef bint begin_failover(self) except -1
    cpdef int sendi(self, Endpoint endpoint, Convertor convertor, bytes header, long long payload_size, int order, int flags, int tag) except? -99
    @cython.locals(count=int, descriptor=Descriptor, handler=ReceiveCallback)
    cpdef int poll(self) except -1
    cpdef finalize(self)
