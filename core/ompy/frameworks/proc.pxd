cdef class Proc:
    cdef object __weakref__
    cdef public object bml_endpoint
    cdef public object departed
    cdef public object hostname
    cdef public object left
    cdef public int local_rank
    cdef public int node
    cdef public int rank
