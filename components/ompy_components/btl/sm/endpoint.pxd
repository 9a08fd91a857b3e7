cimport cython

from ompy.frameworks.btl cimport Descriptor, Endpoint
from ompy.net.ring cimport RingWriter

cdef class SmDescriptor(Descriptor):
    cdef public int block
    cdef public SmEndpoint endpoint

@cython.locals(made=SmDescriptor)
cpdef SmDescriptor descriptor_of(segment, int flags, int order, int block)

cdef class SmEndpoint(Endpoint):
    cdef public RingWriter writer
    cdef public long parked
    cdef public long table
    cdef public object queue
    cdef public object bell
    cdef public int copies
