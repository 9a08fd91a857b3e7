cimport cython

from ompy cimport raw

# the module's constants, in C
cdef long long ERR_INTERN
cdef long long _MAGIC
cdef long long _SIZE

cdef class Registration:
    cdef public bytes wire
    cdef public int access
    cdef public unsigned long long identity
    cdef public object memory

cdef class RegistrationTable:
    cdef dict _entries
    cdef unsigned long long _next
    cdef unsigned long long _first_word
    @cython.locals(made=Registration)
    cpdef Registration add(self, memory, int access, unsigned long long low=*, int bits=*)
    @cython.locals(known=Registration)
    cpdef Registration remove(self, handle)
    cpdef Registration get(self, unsigned long long identity)
    cpdef find(self, unsigned long long identity, long long offset, long long size, int access)

@cython.locals(first="unsigned long long")
cpdef unsigned long long identity_of(bytes handle, unsigned long long rank) except? 0
