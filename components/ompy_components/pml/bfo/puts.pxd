cimport cython

from ompy cimport raw
from ompy.frameworks.btl cimport BtlModule, Descriptor, Endpoint
from ompy_components.pml.bfo.rails cimport Rails
from ompy_components.pml.ob1.headers cimport check
from ompy_components.pml.ob1.rails cimport find_rail
from ompy_components.pml.ob1.rdma_put cimport PutWrites, Write
from ompy_components.pml.ob1.sendrequest cimport SendRequest

# the module's constants, in C
cdef long long NOT_AVAILABLE
cdef long long PUT
cdef long long PUT_SIZE

cdef class BfoPutWrites(PutWrites):
    cdef public dict _flying
    cdef public dict _seen
    cdef object bfo
    cdef Rails rails
    cdef object sending
    cpdef arrived(self, BtlModule module, Endpoint endpoint, data)
    cdef bint _is_new(self, data) except -1
    @cython.locals(request=SendRequest, done=bint)
    cpdef bint start(self, Write fragment) except -1
    @cython.locals(fragment=Write, request=SendRequest)
    cpdef completed(self, BtlModule module, Endpoint endpoint, Descriptor descriptor, int status)
