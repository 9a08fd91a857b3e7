cimport cython

from ompy cimport raw
from ompy_components.pml.ob1.headers cimport as_signed

# the module's constants, in C
cdef long long ERR_INTERN
cdef long long FIN
cdef long long _FIN_SIZE
cdef long long _LOW
cdef long long _RESTART
cdef long long RNDV_SIZE
cdef long long SEQUENCE_MASK

cdef class Fin:
    cdef public int context_id
    cdef public int flags
    cdef public unsigned long long fragment
    cdef public unsigned long long generation
    cdef public unsigned long long offset
    cdef public long long sequence
    cdef public long long size
    cdef public int source

cpdef bint newer(long long one, long long other) except -1
cpdef bint is_behind(long long sequence, long long expected) except -1
cpdef bint is_first_try(data) except -1
@cython.locals(kind=int, first="unsigned long long")
cpdef bytes fin_words(unsigned long long flags, unsigned long long context_id, long long source, unsigned long long sequence, unsigned long long generation, long long size, unsigned long long fragment, unsigned long long offset)
@cython.locals(first="unsigned long long", second="unsigned long long", fin=Fin)
cpdef Fin parse_fin(data)
@cython.locals(kind=int)
cdef _check(int tag, Py_ssize_t size, data)
