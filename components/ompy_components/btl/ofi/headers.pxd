cimport cython

from ompy cimport raw

# the module's constants, in C
cdef long long FIRST
cdef long long MAC_SIZE
cdef long long SECOND
cdef long long _BYE
cdef long long _FRAGMENT
cdef unsigned long long _HALF
cdef long long _WHOLE

cdef class Header:
    cdef public unsigned long long acknowledged
    cdef public unsigned long long generation
    cdef public unsigned long long kind
    cdef public unsigned long long number
    cdef public unsigned long long rank
    cdef public unsigned long long tag

cdef class Seal:
    cdef object _datagrams
    cdef dict _expected
    cdef unsigned long long _own
    cdef unsigned long long _place
    cdef object _seal
    cdef dict _tokens
    cdef bint _whole
    cdef public long long refused
    @cython.locals(first="unsigned long long", second="unsigned long long")
    cpdef close(self, message, unsigned long long to, Header header)
    cpdef withdraw(self, unsigned long long to, unsigned long long kind)
    @cython.locals(first="unsigned long long", second="unsigned long long", rank="unsigned long long", kind="unsigned long long", made=Header)
    cpdef Header open(self, message, unsigned long long size)
    @cython.locals(first="unsigned long long")
    cdef bint _proves(self, message, unsigned long long rank, unsigned long long kind) except -1

cdef bytes _receiver(unsigned long long place, unsigned long long kind)
