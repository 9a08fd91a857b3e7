cimport cython

from ompy.data.convertor cimport Convertor
from ompy.data.request cimport Request
from ompy.frameworks.bml cimport BmlEndpoint, Rail
from ompy.frameworks.btl cimport BtlModule, CompletionCallback, Descriptor, Endpoint
from ompy.frameworks.communicator cimport Communicator
from ompy.frameworks.proc cimport Proc
from ompy.trace.sink cimport Trace
from ompy_components.pml.ob1.headers cimport match_words
from ompy_components.pml.ob1.matching cimport Matching
from ompy_components.pml.ob1.rdma_put cimport PutWrites
from ompy_components.pml.ob1.rendezvous_send cimport RendezvousSend
from ompy_components.pml.ob1.selection cimport choose
from ompy_components.pml.ob1.sendrequest cimport SendRequest
from ompy_components.pml.ob1.states cimport next_send_state

cdef class FragmentDone(CompletionCallback):
    cdef Sending _sending
    cpdef completed(self, BtlModule module, Endpoint endpoint, Descriptor descriptor, int status)

cdef class Sending:
    cdef object _ob1
    cdef Trace _trace
    cdef FragmentDone _done
    cdef Request _gone
    cdef int _immediate_flags
    cdef unsigned long long _next_id
    cdef RendezvousSend _rendezvous
    cdef public dict requests
    cdef public object streaming
    cdef public PutWrites puts
    @cython.locals(proc=Proc, endpoint=BmlEndpoint, matching=Matching, sequence=int, request=SendRequest)
    cpdef Request begin(self, Communicator communicator, Convertor convertor, int target, long tag, int mode, bint blocking=*)
    @cython.locals(rail=Rail, result=int)
    cpdef bint start(self, SendRequest request) except -1
    @cython.locals(rail=Rail, module=BtlModule, size="long long", inplace=bint, eager_payload="long long", header=bytes, flags=int)
    cdef bint _at_once(self, BmlEndpoint endpoint, Communicator communicator, Convertor convertor, long tag, int mode, int sequence) except -1
    cpdef bint given_up(self, SendRequest request) except -1
    @cython.locals(module=BtlModule, size="long long", eager_payload="long long", inplace=bint)
    cdef int _start_on(self, Rail rail, SendRequest request) except? -99
    @cython.locals(size="long long", result=int)
    cdef bint _immediate(self, Rail rail, SendRequest request) except -1
    cdef int _prepared(self, Rail rail, SendRequest request) except? -99
    cdef int _allocated(self, Rail rail, SendRequest request) except? -99
    cpdef open_rendezvous(self, SendRequest request)
    cdef _close_rendezvous(self, SendRequest request)
    @cython.locals(result=int, payload="long long")
    cpdef int send_fragment(self, Rail rail, SendRequest request, Descriptor descriptor, int tag) except? -99
    cpdef fragment_done(self, SendRequest request, Descriptor descriptor, int status)
    cdef _account(self, SendRequest request, int tag, long long payload)
    cpdef finish_if_delivered(self, SendRequest request)
    cpdef fail_peer(self, proc, reason)
    cpdef path_failed(self, SendRequest request, Rail rail)
    cpdef no_path(self, SendRequest request)
    cdef _give_up(self, SendRequest request, int error, detail)
    cdef bytes _header_of(self, SendRequest request)
    cpdef bytes match_header(self, int context_id, int rank, long tag, int sequence)
    cpdef bytes frag_header(self, SendRequest request, long long offset)
