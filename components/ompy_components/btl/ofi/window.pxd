cimport cython

# the module's constants, in C
cdef long long _MASK

cdef class Window:
    cdef set _beyond
    cdef public long long acknowledged
    cdef public long long sent
    cdef public long long size
    cdef public long long taken
    cdef public long long told
    cpdef long long open(self) except -1
    cpdef bint full(self) except -1
    cpdef long long owed(self) except -1
    cpdef long long next(self) except -1
    @cython.locals(ahead="long long", following="long long")
    cpdef bint accept(self, long long number) except -1
    @cython.locals(more="long long")
    cpdef long long acknowledge(self, long long number) except -1
    cpdef tell(self)
