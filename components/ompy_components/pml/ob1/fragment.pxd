cimport cython

from ompy.frameworks.btl cimport BtlModule

cdef class RemoteMemory:
    cdef public long long address
    cdef public unsigned long long fragment_id
    cdef public bytes handle
    cdef public BtlModule module
    cdef public list others

cdef class Fragment:
    cdef public int kind
    cdef public int flags
    cdef public int source
    cdef public long tag
    cdef public long long sequence
    cdef public long long length
    cdef public unsigned long long sender_request
    cdef public object payload
    cdef public RemoteMemory remote
    cdef public Fragment before
    cdef public Fragment after
    cdef public Fragment after_of_tag
    cpdef keep(self)

@cython.locals(made=Fragment)
cpdef Fragment fragment_of(int kind, int flags, int source, long tag, long long sequence, long long length, unsigned long long sender_request, object payload)
