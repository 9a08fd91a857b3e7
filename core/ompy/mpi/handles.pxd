cdef class State:
    cdef object __weakref__
    cdef public object number
