cimport cython

from ompy cimport raw

# the module's constants, in C
cdef long long FIRST_READ

cpdef bytes frame_word(unsigned long long tag, unsigned long long kind, unsigned long long taken, unsigned long long size)

cdef class FrameReader:
    cdef object _memory
    cdef object _first
    cdef long long _largest
    cdef long long _begin
    cdef long long _end
    cdef bint _landing
    cdef long long _needed
    cdef object _target
    cdef public int tag
    cdef public int kind
    cdef public long long left
    cdef public object fragment
    @cython.locals(held="long long")
    cpdef room(self)
    cpdef received(self, long long count)
    @cython.locals(held="long long")
    cpdef bint next(self) except -1
    @cython.locals(start="long long", tag=int, kind=int, reserved=int, size="long long")
    cdef bint _framed(self, unsigned long long word, long long held) except -1
    cdef bint _is_remote(self, int kind, long long size) except -1
    cdef bint _next_remote(self, int kind, long long size, long long held) except -1
    cpdef bint land(self, target) except -1
    cpdef drop(self)
    cdef bint _landed(self) except -1
