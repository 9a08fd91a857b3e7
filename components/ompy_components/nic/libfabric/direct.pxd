# The functions of direct.py, in C, for the modules that are compiled. Keep the two alike.
# The interpreter's lock is kept: none of the calls waits, and to let go of it and take it again
# costs as much as reading an empty queue.

from cpython.buffer cimport PyBuffer_IsContiguous
from cpython.memoryview cimport PyMemoryView_FromObject, PyMemoryView_GET_BUFFER

ctypedef Py_ssize_t (*SendCall)(void *, const void *, size_t, void *, unsigned long long, void *) noexcept
ctypedef Py_ssize_t (*InjectCall)(void *, const void *, size_t, unsigned long long) noexcept
ctypedef Py_ssize_t (*MoveCall)(void *, void *, size_t, void *, unsigned long long, unsigned long long, unsigned long long, void *) noexcept
ctypedef Py_ssize_t (*ReadCall)(void *, void *, size_t) noexcept

cdef inline unsigned long long entry(library, str name, table, str slot):
    function = library.slot_or_none(table, slot)
    return 0 if function is None else int(library.ffi.cast("uintptr_t", function))

cdef inline unsigned long long place(ffi, pointer):
    return int(ffi.cast("uintptr_t", pointer))

cdef inline object lend(ffi, memory):
    view = PyMemoryView_FromObject(memory)
    if not PyBuffer_IsContiguous(PyMemoryView_GET_BUFFER(view), b"C"):
        raise BufferError("the memory is not contiguous")
    return view

cdef inline object lend_writable(ffi, memory):
    view = lend(ffi, memory)
    if PyMemoryView_GET_BUFFER(view).readonly:
        raise BufferError("the memory must not be written to")
    return view

cdef inline void take_back(ffi, lent):
    if isinstance(lent, memoryview):
        lent.release()
    else:  # of an atomic, which cffi calls
        ffi.release(lent)

cdef inline Py_ssize_t send(unsigned long long function, unsigned long long endpoint, lent, unsigned long long descriptor, unsigned long long to, unsigned long long context) except? -1:
    cdef Py_buffer *inside = PyMemoryView_GET_BUFFER(lent)
    cdef Py_ssize_t result = -38  # ENOSYS
    if function:
        result = (<SendCall><size_t>function)(<void *><size_t>endpoint, inside.buf, <size_t>inside.len, <void *><size_t>descriptor, to, <void *><size_t>context)
    return result

cdef inline Py_ssize_t inject(unsigned long long function, unsigned long long endpoint, lent, unsigned long long to) except? -1:
    cdef Py_buffer *inside = PyMemoryView_GET_BUFFER(lent)
    cdef Py_ssize_t result = -38  # ENOSYS
    if function:
        result = (<InjectCall><size_t>function)(<void *><size_t>endpoint, inside.buf, <size_t>inside.len, to)
    return result

cdef inline Py_ssize_t receive(unsigned long long function, unsigned long long endpoint, lent, unsigned long long descriptor, unsigned long long whence, unsigned long long context) except? -1:
    return send(function, endpoint, lent, descriptor, whence, context)

cdef inline Py_ssize_t move(unsigned long long function, unsigned long long endpoint, lent, unsigned long long descriptor, unsigned long long to, unsigned long long address, unsigned long long key, unsigned long long context) except? -1:
    cdef Py_buffer *inside = PyMemoryView_GET_BUFFER(lent)
    cdef Py_ssize_t result = -38  # ENOSYS
    if function:
        result = (<MoveCall><size_t>function)(<void *><size_t>endpoint, inside.buf, <size_t>inside.len, <void *><size_t>descriptor, to, address, key, <void *><size_t>context)
    return result

cdef inline Py_ssize_t completions(unsigned long long function, unsigned long long queue, unsigned long long entries, size_t most) except? -1:
    return (<ReadCall><size_t>function)(<void *><size_t>queue, <void *><size_t>entries, most)
