cdef class FrameReader:
    cdef object _memory
    cdef long long _largest
    cdef long long _begin
    cdef long long _end
    cdef public int tag
    cdef public int kind
    cdef public object fragment
    cpdef room(self)
    cpdef received(self, long long count)
    cpdef bint next(self) except -1
