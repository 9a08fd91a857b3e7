from ompy.frameworks.btl cimport Endpoint
from ompy_components.btl.ofi.window cimport Window

cdef class OfiEndpoint(Endpoint):
    cdef public long long abandon_at
    cdef public unsigned long long address
    cdef public object broken
    cdef public long long farewell
    cdef public long long generation
    cdef public long long heard
    cdef public object kept
    cdef public dict operations
    cdef public bint parted
    cdef public object path
    cdef public unsigned long long place
    cdef public dict posted
    cdef public bint reached
    cdef public object record
    cdef public bint refused
    cdef public Window window
    cpdef str describe(self)
    cpdef bint usable(self) except -1
    cpdef bint left(self) except -1
    cpdef bint busy(self) except -1
