cimport cython

from ompy cimport raw

cdef class RankLock:
    cdef unsigned long _owner
    cdef long _depth
    cdef long _waiting
    cdef object _gate
    @cython.locals(me="unsigned long")
    cpdef bint acquire(self, bint blocking=*) except -1
    cdef _wait(self)
    cpdef release(self)
