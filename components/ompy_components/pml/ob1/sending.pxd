cimport cython

from ompy.data.convertor cimport Convertor
from ompy.data.request cimport Request
from ompy.frameworks.bml cimport BmlEndpoint, Rail
from ompy.frameworks.btl cimport BtlModule, CompletionCallback, Descriptor, Endpoint
from ompy.frameworks.communicator cimport Communicator
from ompy.frameworks.proc cimport Proc
from ompy.trace.sink cimport Trace
from ompy_components.pml.ob1.flow cimport PeerFlow
from ompy_components.pml.ob1.halves cimport SenderHalf
from ompy_components.pml.ob1.headers cimport match_words, place
from ompy_components.pml.ob1.matching cimport Matching, PeerQueue
from ompy_components.pml.ob1.rdma cimport Rdma
from ompy_components.pml.ob1.rendezvous_send cimport RendezvousSend
from ompy_components.pml.ob1.selection cimport choose, choose_bare
from ompy_components.pml.ob1.sendrequest cimport SendRequest, send_request
from ompy_components.pml.ob1.states cimport next_send_state

# the module's constants, in C
cdef long long UNREACHABLE

# the module's constants, in C
cdef long long ERR_OTHER
cdef long long ERR_PROC_FAILED
cdef long long BTL_OWNERSHIP
cdef long long COMPLETED
cdef long long NO_ORDER
cdef long long OUT_OF_RESOURCE
cdef long long PRIORITY
cdef long long RETURNABLE
cdef long long SEND_ALWAYS_CALLBACK
cdef long long SEND_INPLACE
cdef long long BUFFERED
cdef long long FRAG
cdef long long MATCH
cdef long long MATCH_SIZE
cdef long long MESSAGE_COST
cdef long long RGET
cdef long long RNDV
cdef long long UNION_SIZE

cdef class FragmentDone(CompletionCallback):
    cdef Sending _sending
    cpdef completed(self, BtlModule module, Endpoint endpoint, Descriptor descriptor, int status)

cdef class Sending(SenderHalf):
    cdef object _ob1
    cdef Trace _trace
    cdef FragmentDone _done
    cdef Request _gone
    cdef int _immediate_flags
    cdef unsigned long long _next_id
    cdef public RendezvousSend rendezvous
    cdef Rdma _rdma
    cdef public bint leavers
    @cython.locals(proc=Proc, endpoint=BmlEndpoint, matching=Matching, sequence="long long", request=SendRequest, queue=PeerQueue, flow=PeerFlow, cost="long long", room=bint, credit=bint)
    cpdef Request begin(self, Communicator communicator, Convertor convertor, int target, long tag, int mode, bint blocking=*)
    @cython.locals(rail=Rail, result=int)
    cpdef bint start(self, SendRequest request) except -1
    @cython.locals(rail=Rail, module=BtlModule, size="long long", inplace=bint, eager_payload="long long", header=bytes, flags=int)
    cdef bint _at_once(self, BmlEndpoint endpoint, Communicator communicator, Convertor convertor, long tag, int mode, long long sequence) except -1
    @cython.locals(module=BtlModule, size="long long", eager_payload="long long", inplace=bint)
    cdef int _start_on(self, Rail rail, SendRequest request) except? -99
    @cython.locals(size="long long", result=int)
    cdef bint _immediate(self, Rail rail, SendRequest request) except -1
    cdef int _prepared(self, Rail rail, SendRequest request) except? -99
    cdef int _allocated(self, Rail rail, SendRequest request) except? -99
    cdef _close_rendezvous(self, SendRequest request)
    @cython.locals(result=int, payload="long long")
    cpdef int send_fragment(self, Rail rail, SendRequest request, Descriptor descriptor, int tag) except? -99
    cpdef fragment_done(self, SendRequest request, Descriptor descriptor, int status)
    cpdef fragment_failed(self, SendRequest request, Descriptor descriptor, int status)
    cdef _account(self, SendRequest request, int tag, long long payload)
    cpdef fail_peer(self, proc, reason)
    cpdef bint is_among(self, SendRequest request, set numbers) except -1
    cpdef unknown(self, int tag, unsigned long long number)
    cpdef keep_rest(self, SendRequest request, long long sent)
    cpdef give_up(self, SendRequest request, int error, detail)
    cdef bytes _header_of(self, SendRequest request)
    cpdef bytes match_header(self, int context_id, int rank, long tag, long long sequence)
