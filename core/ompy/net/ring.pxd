cimport cython

# the module's constants, in C
cdef long long HEADER_SIZE
cdef long long _TAIL
cdef long long _HEAD
cdef long long _SLOT_HEADER
cdef unsigned long long _LENGTH

cdef class RingWriter:
    cdef object _bytes
    cdef unsigned long long[::1] _words
    cdef long long _base
    cdef long long _first
    cdef unsigned long long _slots
    cdef long long _size
    cdef unsigned long long _tail
    cdef unsigned long long _head
    cdef public long long room
    cpdef long long reserve(self) except -2
    @cython.locals(slot="long long")
    cpdef publish(self, unsigned long long length, unsigned long long tag, unsigned long long kind, unsigned long long reference)

cdef class RingReader:
    cdef unsigned long long[::1] _words
    cdef long long _base
    cdef long long _first
    cdef unsigned long long _slots
    cdef long long _size
    cdef unsigned long long _head
    cdef public unsigned long long length
    cdef public int tag
    cdef public int kind
    cdef public unsigned long long reference
    cdef public long long payload
    cdef public Py_ssize_t slot
    cpdef bint pending(self) except -1
    @cython.locals(start="long long", word="unsigned long long")
    cpdef bint peek(self) except -1
    cpdef release(self)
