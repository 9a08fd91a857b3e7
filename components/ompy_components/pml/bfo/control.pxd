from ompy.frameworks.bml cimport Rail
from ompy.frameworks.btl cimport BtlModule, CompletionCallback, Descriptor, Endpoint
from ompy_components.pml.bfo.rails cimport Rails
from ompy_components.pml.ob1.control cimport Control

cdef class ControlDone(CompletionCallback):
    cdef object bfo
    cpdef completed(self, BtlModule module, Endpoint endpoint, Descriptor descriptor, int status)

cdef class BfoControl(Control):
    cdef Rails _rails
    cdef object bfo
    cpdef bint attempt(self, Rail rail, bytes message, int tag) except -1
    cpdef refused(self, Rail rail, bytes message, int tag)
