# The functions of borrowed.py, in C, for the modules that are compiled. Keep the two alike.

from cpython.buffer cimport Py_buffer
from libc.string cimport memcpy, memset

from ompy cimport raw

# Cython's own declaration has the exporter as an object, which it would count
cdef extern from "Python.h":
    int PyBUF_FULL_RO
    ctypedef struct Lent "Py_buffer":
        void *buf
        void *obj
        Py_ssize_t len
        int readonly
        int ndim
        char *format
    bint PyObject_CheckBuffer(object exporter)
    int PyObject_GetBuffer(object exporter, Lent *view, int flags) except -1
    void PyBuffer_Release(Lent *view)

cdef inline Lent borrow(object buffer, bint writable):
    cdef Lent lent
    memset(&lent, 0, sizeof(lent))
    if not PyObject_CheckBuffer(buffer):
        return lent
    PyObject_GetBuffer(buffer, &lent, PyBUF_FULL_RO)
    if (writable and lent.readonly) or not raw.are_numbers(<Py_buffer *>&lent):
        PyBuffer_Release(&lent)
    return lent

cdef inline Lent nothing() noexcept:
    cdef Lent lent
    memset(&lent, 0, sizeof(lent))
    return lent

cdef inline bint is_lent(Lent lent) noexcept:
    return lent.obj != NULL

cdef inline Py_ssize_t size(Lent lent) noexcept:
    return lent.len

cdef inline object view_of(Lent lent, object owner):
    return raw.flat(memoryview(owner))

cdef inline void copy_out(Lent lent, object target, Py_ssize_t at, Py_ssize_t count):
    memcpy(raw.begin(target) + at, lent.buf, count)

cdef inline void copy_in(Lent lent, object source, Py_ssize_t start, Py_ssize_t count):
    memcpy(lent.buf, raw.begin(source) + start, count)

cdef inline void give_back(Lent lent):
    PyBuffer_Release(&lent)
