
# the module's constants, in C
cdef long long ERR_ARG
cdef class State:
    cdef object __weakref__
    cdef public object number

cdef class Handle:
    cdef object __weakref__
    cdef public object _inner
    cdef public object _name
