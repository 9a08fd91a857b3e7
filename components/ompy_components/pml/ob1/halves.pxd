from ompy.frameworks.bml cimport Rail
from ompy.frameworks.btl cimport Descriptor
from ompy_components.pml.ob1.matching cimport RecvRequest
from ompy_components.pml.ob1.sendrequest cimport SendRequest

cdef class SenderHalf:
    cdef public dict requests
    cdef public object streaming
    cdef public object puts
    cpdef open_rendezvous(self, SendRequest request)
    cpdef int send_fragment(self, Rail rail, SendRequest request, Descriptor descriptor, int tag) except? -99
    cpdef finish_if_delivered(self, SendRequest request)
    cpdef bint given_up(self, SendRequest request) except -1
    cpdef path_failed(self, SendRequest request, Rail rail)
    cpdef no_path(self, SendRequest request)
    cpdef unknown(self, int tag, unsigned long long number)
    cpdef keep_rest(self, SendRequest request, long long sent)
    cpdef bytes frag_header(self, SendRequest request, long long offset)

cdef class ReceiverHalf:
    cdef public dict requests
    cpdef finish_if_here(self, RecvRequest request)
    cpdef ask_for_fragments(self, RecvRequest request, long long offset, long long size)
