from ompy.frameworks.btl cimport Descriptor, Endpoint
from ompy.net.ring cimport RingWriter

cdef class SmDescriptor(Descriptor):
    cdef public int block
    cdef public SmEndpoint endpoint

cdef class SmEndpoint(Endpoint):
    cdef public RingWriter writer
    cdef public long parked
    cdef public long table
    cdef public object queue
    cdef public object bell
    cdef public int copies
