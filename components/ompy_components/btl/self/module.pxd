from ompy.frameworks.btl cimport Descriptor, Endpoint
from ompy.frameworks.transfers cimport RdmaModule

cdef class SelfModule(RdmaModule):
    cdef Endpoint _endpoint
    cdef object _queue
    cdef public object registered
    cpdef finalize(self)
