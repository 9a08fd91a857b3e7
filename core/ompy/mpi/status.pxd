
# the module's constants, in C
cdef long long ANY_SOURCE
cdef long long ANY_TAG
cdef long long PROC_NULL
cdef long long UNDEFINED
cdef long long ERR_TYPE
cdef long long SUCCESS
cdef long long F_ERROR
cdef long long F_SOURCE
cdef long long F_STATUS_SIZE
cdef long long F_TAG
cdef long long _CANCELLED
cdef long long _COUNT_LOW
cdef long long _COUNT_HIGH
# compiled as it is: a class that users may inherit from
