from ompy.frameworks.btl cimport BtlModule, Descriptor, Endpoint

cdef class SelfModule(BtlModule):
    cdef Endpoint _endpoint
    cdef object _queue
    cdef public object registered
    cpdef finalize(self)
