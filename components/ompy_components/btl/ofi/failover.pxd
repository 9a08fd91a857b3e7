cdef class Failover:
    cdef dict _to_fail
    cdef object _doomed
    cdef dict _draining
    cdef object _module
    cdef public dict counted
    cdef public bint unsettled
    cpdef int settle(self) except -1
