cimport cython

from ompy cimport raw

# the module's constants, in C
cdef long long _MAGIC
cdef unsigned long long _RANK
cdef long long _REST
cdef long long _SIZE
cdef long long _WHOLE

@cython.locals(rest="unsigned long long", whole="unsigned long long")
cpdef bint allows(bytes handle, unsigned long long rank, unsigned long long offset, unsigned long long size, int access) except -1
