from ompy.data cimport elements

cdef class Operation:
    cdef public object name
    cdef public bint commutative
    cdef public object kernel
    cdef public dict loops
    cdef object _check
    cpdef check(self, layout)
    cpdef combine(self, layout, left, long long start, right, long long at, long long size)
