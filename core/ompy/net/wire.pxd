# The functions of wire.py, in C, for the modules that are compiled. Keep the two alike.

from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from libc.errno cimport errno

cdef extern from "sys/socket.h" nogil:
    int MSG_DONTWAIT
    int MSG_NOSIGNAL
    ssize_t c_receive "recv"(int, void *, size_t, int)
    ssize_t c_send "send"(int, const void *, size_t, int)

cdef inline long long receive(int descriptor, object view):
    cdef Py_buffer *inside = PyMemoryView_GET_BUFFER(view)
    cdef ssize_t count
    cdef int problem
    with nogil:
        count = c_receive(descriptor, inside.buf, <size_t>inside.len, MSG_DONTWAIT)
        problem = errno
    return count if count >= 0 else -problem

cdef inline long long send(int descriptor, object view):
    cdef Py_buffer *inside = PyMemoryView_GET_BUFFER(view)
    cdef ssize_t count
    cdef int problem
    with nogil:
        count = c_send(descriptor, inside.buf, <size_t>inside.len, MSG_DONTWAIT | MSG_NOSIGNAL)
        problem = errno
    return count if count >= 0 else -problem
