# The functions of vm.py, in C, for the modules that are compiled. Keep the two alike.

from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from libc.errno cimport errno

cdef extern from "sys/uio.h" nogil:
    struct iovec:
        void *iov_base
        size_t iov_len
    ssize_t process_vm_readv(int, const iovec *, unsigned long, const iovec *, unsigned long, unsigned long)
    ssize_t process_vm_writev(int, const iovec *, unsigned long, const iovec *, unsigned long, unsigned long)

cdef inline unsigned long long address_of(object view):
    return <unsigned long long>PyMemoryView_GET_BUFFER(view).buf

cdef inline long long move(bint writes, int process, unsigned long long address, object view, long long done):
    cdef iovec here
    cdef iovec there
    cdef ssize_t moved
    cdef int problem
    here.iov_base = <char *>PyMemoryView_GET_BUFFER(view).buf + done
    here.iov_len = PyMemoryView_GET_BUFFER(view).len - done
    there.iov_base = <void *>(address + <unsigned long long>done)
    there.iov_len = here.iov_len
    with nogil:
        if writes:
            moved = process_vm_writev(process, &here, 1, &there, 1, 0)
        else:
            moved = process_vm_readv(process, &here, 1, &there, 1, 0)
        problem = errno
    return moved if moved >= 0 else -problem
