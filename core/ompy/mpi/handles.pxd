
# the module's constants, in C
cdef long long ERR_ARG
cdef class State:
    cdef object __weakref__
    cdef public object number
