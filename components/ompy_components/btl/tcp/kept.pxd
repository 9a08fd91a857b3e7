cimport cython

# the module's constants, in C
cdef long long _TIDY

cdef class Kept:
    cdef list _entries
    cdef Py_ssize_t _taken
    cpdef append(self, entry)
    @cython.locals(entries=list, index=Py_ssize_t)
    cpdef popleft(self)
    cpdef list take_all(self)
