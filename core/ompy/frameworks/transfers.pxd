from ompy.frameworks.btl cimport BtlModule, Descriptor, Endpoint
from ompy.frameworks.registration cimport identity_of

cdef class RdmaModule(BtlModule):
    cdef int _begin(self, int access, Endpoint endpoint, Descriptor descriptor, remote_handle, unsigned long long offset) except? -99
    cpdef int transfer(self, int access, Endpoint endpoint, Descriptor descriptor, unsigned long long identity, unsigned long long offset) except? -99
