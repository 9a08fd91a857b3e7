from ompy.frameworks.call_order cimport CallOrder

cdef class Communicator:
    cdef object __weakref__
    cdef public object context
    cdef public object pml
    cdef public int context_id
    cdef public list procs
    cdef public int size
    cdef public int rank
    cdef public object name
    cdef public object coll
    cdef public object pml_state
    cdef public CallOrder order
