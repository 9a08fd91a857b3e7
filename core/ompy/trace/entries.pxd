# The functions of entries.py, in C, for the modules that are compiled. Keep the two alike.

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.list cimport PyList_GET_SIZE, PyList_SET_ITEM, PyList_GET_ITEM
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM

cdef inline object ring(Py_ssize_t size):
    return ([None] * size, bytearray(size * 6 * sizeof(long long)))

cdef inline void put(object into, long long number, long long time, str what, long long context, long long peer, long long tag, long long sequence, long long size):
    cdef object names = <object>PyTuple_GET_ITEM(into, 0)
    if not PyList_GET_SIZE(names):
        return
    cdef object values = <object>PyTuple_GET_ITEM(into, 1)
    cdef Py_ssize_t at = number % PyList_GET_SIZE(names)
    cdef long long *value = <long long *>PyByteArray_AS_STRING(values) + at * 6
    cdef object before = <object>PyList_GET_ITEM(names, at)
    Py_INCREF(what)
    PyList_SET_ITEM(names, at, what)
    Py_DECREF(before)
    value[0] = time
    value[1] = context
    value[2] = peer
    value[3] = tag
    value[4] = sequence
    value[5] = size

cdef inline list entries(object of, long long number):
    cdef Py_ssize_t size = PyList_GET_SIZE(<object>PyTuple_GET_ITEM(of, 0))
    cdef list names = <list>PyTuple_GET_ITEM(of, 0)
    cdef long long *value
    cdef list found = []
    cdef long long each
    for each in range(max(0, number - size), number):
        value = <long long *>PyByteArray_AS_STRING(<object>PyTuple_GET_ITEM(of, 1)) + (each % size) * 6
        found.append((value[0], names[each % size], value[1], value[2], value[3], value[4], value[5]))
    return found
