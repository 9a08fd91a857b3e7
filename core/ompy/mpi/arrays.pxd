cimport cython

cpdef bint is_array(obj) except -1
cdef _find(numpy)
@cython.locals(header=bytes)
cpdef encoded(array)
cdef bytes _header(bytes code, tuple shape, bytes order)
@cython.locals(header=bytes, start=Py_ssize_t)
cpdef decoded(view)
@cython.locals(dimensions=int, length=int, begin=Py_ssize_t)
cdef tuple _parse(bytes header)
