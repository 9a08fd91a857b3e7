cimport cython

from ompy cimport raw

# the module's constants, in C
cdef long long NUMBER_SHIFT
cdef long long NUMBER_MASK
cdef long long KIND_SHIFT
cdef long long KIND_MASK
cdef long long TAG_DETAIL
cdef long long TAG_KIND_SHIFT
cdef long long TAG_NUMBER_SHIFT
cdef long long TAG_NUMBER
cdef long long _TAG_CALLS
cdef long long _DETAIL_MASK
cdef long long _REMEMBERED
cdef unsigned long long _DIGEST
cdef unsigned long long _WORD

cdef class CallOrder:
    cdef public unsigned long long number
    cdef public unsigned long long word
    cdef public unsigned long long digest
    cdef dict _kept
    cdef unsigned long long[::1] _past
    @cython.locals(number="unsigned long long", word="unsigned long long")
    cpdef begin(self, unsigned long long kind, unsigned long long detail)
    @cython.locals(word="unsigned long long", place="long long")
    cpdef long long tag(self) except? -1

@cython.locals(number="long long")
cpdef long long detail_of(root) except -1
cdef long long _whole(root) except -1
