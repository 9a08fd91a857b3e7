from ompy cimport raw

cdef class Registration:
    cdef bytes _wire
    cdef public int access
    cdef public unsigned long long identity
    cdef public object memory

cdef class RegistrationTable:
    cdef dict _entries
    cdef unsigned long long _next
    cdef int _rank
    cpdef Registration add(self, memory, int access, unsigned long long low=*, int bits=*)
    cpdef Registration remove(self, handle)
    cpdef Registration get(self, unsigned long long identity)
    cpdef find(self, unsigned long long identity, long long offset, long long size, int access)

cpdef unsigned long long identity_of(handle, unsigned long long rank) except? 0
