# the module's constants, in C
cdef long long LOOKS
cdef long long MS

cdef class Guard:
    cdef bint _closed
    cdef dict _doubts
    cdef object _module
    cdef long long _silence
    cdef object _timer
    cpdef watch_over(self)
