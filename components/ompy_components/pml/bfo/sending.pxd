cimport cython

from ompy.frameworks.bml cimport Rail
from ompy.frameworks.btl cimport Descriptor
from ompy_components.pml.bfo.headers cimport newer
from ompy_components.pml.ob1.rails cimport Share, heaviest_first, share_out
from ompy_components.pml.ob1.rendezvous_send cimport RendezvousSend
from ompy_components.pml.ob1.sending cimport Sending
from ompy_components.pml.ob1.sendrequest cimport SendRequest, send_request

# the module's constants, in C
cdef long long BY_ID
cdef long long ERR_OTHER
cdef long long ERR_PROC_FAILED
cdef long long FRAG
cdef long long MATCH
cdef long long MATCH_SIZE
cdef long long NOTIFY
cdef long long STANDARD
cdef long long SYNCHRONOUS

cdef class BfoRendezvousSend(RendezvousSend):
    cdef dict restarts
    cpdef bytes rndv_header(self, SendRequest request, int flags)
    cpdef bytes rget_header(self, SendRequest request)
    cdef bytes _marked(self, SendRequest request, bytes header)

cdef class BfoSending(Sending):
    cdef long long _most
    cdef public object bfo
    cdef public dict dancing
    cdef public dict restarts
    cpdef fragment_failed(self, SendRequest request, Descriptor descriptor, int status)
    cpdef path_failed(self, SendRequest request, Rail rail)
    cpdef bint given_up(self, SendRequest request) except -1
    cpdef keep_rest(self, SendRequest request, long long sent)
    cpdef unknown(self, int tag, unsigned long long number)
    cpdef finish_if_delivered(self, SendRequest request)
    cpdef fail_peer(self, proc, reason)
    cpdef bint is_among(self, SendRequest request, set numbers) except -1
