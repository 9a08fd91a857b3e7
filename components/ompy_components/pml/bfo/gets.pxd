cimport cython

from ompy.frameworks.btl cimport BtlModule, Descriptor, Endpoint
from ompy_components.pml.bfo.rails cimport Rails
from ompy_components.pml.ob1.fragment cimport RemoteMemory
from ompy_components.pml.ob1.matching cimport RecvRequest
from ompy_components.pml.ob1.rdma_get cimport Gets, Read

cdef class BfoGets(Gets):
    cdef object bfo
    cdef Rails rails
    cdef object receiving
    cpdef begin(self, RecvRequest request, RemoteMemory remote)
    @cython.locals(fragment=Read, request=RecvRequest, stopped=bint, lost=bint)
    cpdef completed(self, BtlModule module, Endpoint endpoint, Descriptor descriptor, int status)
