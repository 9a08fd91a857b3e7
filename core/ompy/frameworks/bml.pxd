from ompy.frameworks.btl cimport BtlModule, Endpoint
from ompy.frameworks.proc cimport Proc

cdef class Rail:
    cdef public BtlModule module
    cdef public Endpoint endpoint
    cdef public double weight
    cdef public bint immediate

cdef class RailArray:
    cdef public list rails
    cdef Py_ssize_t _next
    cpdef Rail next(self)
    cpdef give_back(self)
    cpdef list in_turn(self)

cdef class BmlEndpoint:
    cdef public Proc proc
    cdef public RailArray eager
    cdef public RailArray send
    cdef public RailArray rdma
    cdef public long long send_limit
    cdef public long long max_send_size
    cdef public long long pipeline_send_length
    cdef public int flags
