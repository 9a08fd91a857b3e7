from ompy.data.convertor cimport Convertor
from ompy.frameworks.bml cimport Rail
from ompy.frameworks.btl cimport BtlModule, CompletionCallback, Descriptor, Endpoint
from ompy.frameworks.communicator cimport Communicator
from ompy_components.pml.ob1.rdma_put cimport PutWrites
from ompy_components.pml.ob1.rendezvous_send cimport RendezvousSend
from ompy_components.pml.ob1.sendrequest cimport SendRequest

cdef class FragmentDone(CompletionCallback):
    cdef Sending _sending
    cpdef completed(self, BtlModule module, Endpoint endpoint, Descriptor descriptor, int status)

cdef class Sending:
    cdef object _ob1
    cdef object _note
    cdef object _clock
    cdef FragmentDone _done
    cdef unsigned long long _next_id
    cdef RendezvousSend _rendezvous
    cdef public dict requests
    cdef public object streaming
    cdef public PutWrites puts
    cpdef SendRequest begin(self, Communicator communicator, Convertor convertor, int target, long tag, int mode, bint blocking=*)
    cpdef bint start(self, SendRequest request) except -1
    cpdef bint given_up(self, SendRequest request) except -1
    cdef int _start_on(self, Rail rail, SendRequest request) except? -99
    cdef bint _immediate(self, Rail rail, SendRequest request) except -1
    cdef int _prepared(self, Rail rail, SendRequest request) except? -99
    cdef int _allocated(self, Rail rail, SendRequest request) except? -99
    cpdef open_rendezvous(self, SendRequest request)
    cdef _close_rendezvous(self, SendRequest request)
    cpdef int send_fragment(self, Rail rail, SendRequest request, Descriptor descriptor, int tag) except? -99
    cpdef fragment_done(self, SendRequest request, Descriptor descriptor, int status)
    cdef _account(self, SendRequest request, int tag, long long payload)
    cpdef finish_if_delivered(self, SendRequest request)
    cpdef fail_peer(self, proc, reason)
    cpdef path_failed(self, SendRequest request, Rail rail)
    cpdef no_path(self, SendRequest request)
    cdef _give_up(self, SendRequest request, int error, detail)
    cpdef bytes match_header(self, SendRequest request)
    cpdef bytes frag_header(self, SendRequest request, long long offset)
