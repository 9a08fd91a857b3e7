cimport cython

# the module's constants, in C
cdef long long _ROOM

cdef class Fifo:
    cdef list _ring
    cdef Py_ssize_t _first
    cdef Py_ssize_t _mask
    cdef readonly Py_ssize_t count
    cpdef append(self, entry)
    cdef _grow(self)
    @cython.locals(first=Py_ssize_t)
    cpdef popleft(self)
    cpdef list take_all(self)
