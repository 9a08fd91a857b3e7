cdef class Failover:
    cdef dict _answers
    cdef bint _closed
    cdef dict _to_fail
    cdef object _doomed
    cdef dict _draining
    cdef dict _menders
    cdef object _module
    cdef public bint begun
    cdef public dict counted
    cdef public bint unsettled
    cpdef int settle(self) except -1
