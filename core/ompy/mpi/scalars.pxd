cimport cython

from ompy cimport raw

# the module's constants, in C
cdef long long LONGEST
cdef long long SIZE
cdef long long _NONE
cdef long long _FALSE
cdef long long _TRUE
cdef unsigned long long _INT
cdef long long _FLOAT
cdef long long _TEXT
cdef long long _BYTES
cdef unsigned long long _MARKED
cdef unsigned long long _MARKS
cdef long long _KIND_AT
cdef unsigned long long _ONES
cdef long long _BEYOND

@cython.locals(number="long long")
cpdef bytes encoded(obj)
cdef bytes _text(object text)
cpdef bint is_scalar(data) except -1
@cython.locals(kind="long long")
cpdef decoded(data)
