from ompy.frameworks.communicator cimport Communicator
from ompy.frameworks.pml cimport Pml
from ompy.mpi.handles cimport State

# the module's constants, in C
cdef long long ERR_COMM

cdef class CommState(State):
    cdef public object api
    cdef public object world
    cdef public Communicator communicator
    cdef public Pml pml
    cdef public int size
    cdef public object predefined
    cdef public object errhandler
    cdef public object attributes
    cdef public object info
    cdef public object topology
    cdef public object buffers
    cdef public object locks
    cdef public object hidden
    cpdef raised(self, problem)
    cpdef fail(self, code, detail)
