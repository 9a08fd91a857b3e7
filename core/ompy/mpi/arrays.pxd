cimport cython

# the module's constants, in C
cdef long long LINE
cdef long long LINES_AT
cdef long long HEADERS_MAX

cpdef bint is_array(obj) except -1
cdef _find(numpy)
@cython.locals(header=bytes)
cpdef encoded(array)
cdef bytes _header(bytes code, tuple shape, bytes order)
@cython.locals(header=bytes, start=Py_ssize_t)
cpdef decoded(view)
@cython.locals(dimensions=int, length=int, begin=Py_ssize_t)
cdef tuple _parse(bytes header)
