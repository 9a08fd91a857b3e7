cimport cython

from ompy.data.convertor cimport Convertor
from ompy.data.request cimport Request
from ompy.engine.base cimport Engine
from ompy.engine.lock cimport RankLock
from ompy.frameworks.btl cimport BtlModule, Endpoint, ErrorCallback, ReceiveCallback
from ompy.frameworks.communicator cimport Communicator
from ompy.frameworks.pml cimport MatchedMessage, Pml
from ompy.trace.sink cimport Trace
from ompy_components.pml.ob1.control cimport Control
from ompy_components.pml.ob1.flow cimport Flow
from ompy_components.pml.ob1.matching cimport Matching, RecvRequest, receive_request
from ompy_components.pml.ob1.rdma cimport Rdma
from ompy_components.pml.ob1.receiving cimport Receiving
from ompy_components.pml.ob1.sending cimport Sending

# the module's constants, in C
cdef long long ERR_ARG
cdef long long ERR_INTERN
cdef long long ERROR_FATAL
cdef long long SEND
cdef long long ACK
cdef long long CREDIT
cdef long long FIN
cdef long long FRAG
cdef long long LEAVE
cdef long long MATCH
cdef long long PUT
cdef long long RGET
cdef long long RNDV
cdef long long UNION_SIZE

cdef class Arrivals(ReceiveCallback):
    cdef Receiving _receiving
    cdef Sending _sending
    cdef Rdma _rdma
    cdef Flow _flow
    cdef Trace _trace
    cpdef received(self, BtlModule module, Endpoint endpoint, int tag, data)
    cdef _other(self, BtlModule module, Endpoint endpoint, int tag, data)
    cdef _orphan(self, Endpoint endpoint)

cdef class PathErrors(ErrorCallback):
    cdef Ob1 _ob1
    cpdef failed(self, BtlModule module, int flags, proc, reason)

cdef class Ob1(Pml):
    cdef object _bml
    cdef object _context
    cdef Engine _engine
    cdef RankLock _lock
    cdef public Control control
    cdef public Flow flow
    cdef public bint gave_up
    cdef public object gone
    cdef public object leaving
    cdef public Rdma rdma
    cdef public Receiving receiving
    cdef public Sending sending
    cdef public object steps
    cdef public object pending
    cdef public Trace trace
    cpdef check_limits(self, BtlModule module)
    cpdef _make_control(self)
    cpdef _make_rdma(self, values)
    cpdef _make_errors(self)
    cpdef _make_sending(self, values)
    cpdef _make_receiving(self, values)
    cpdef endpoint(self, proc)
    cpdef Matching matching(self, Communicator communicator)
    cpdef list matchings(self)
    cpdef unknown(self, int tag, unsigned long long number, what)
    cpdef fail_peer(self, proc, reason)
    cpdef somebody_left(self)
    cpdef forget_rails(self, proc)
    cpdef add_communicator(self, Communicator communicator)
    cpdef remove_communicator(self, Communicator communicator)
    cpdef Request isend(self, Communicator communicator, Convertor convertor, int target, long tag, int mode)
    @cython.locals(request=Request)
    cpdef send(self, Communicator communicator, Convertor convertor, int target, long tag, int mode)
    cpdef Request isend_waited(self, Communicator communicator, Convertor convertor, int target, long tag)
    @cython.locals(request=RecvRequest)
    cpdef Request irecv(self, Communicator communicator, Convertor convertor, int source, long tag)
    cpdef Request iprobe(self, Communicator communicator, int source, long tag)
    cpdef Request probe(self, Communicator communicator, int source, long tag)
    cpdef bint has(self, Communicator communicator, int source, long tag) except -1
    cdef Request _peek(self, Communicator communicator, int source, long tag)
    cpdef MatchedMessage improbe(self, Communicator communicator, int source, long tag)
    cpdef MatchedMessage mprobe(self, Communicator communicator, int source, long tag)
    cdef MatchedMessage _take(self, Communicator communicator, int source, long tag)
    cpdef Request imrecv(self, MatchedMessage message, Convertor convertor)
    cpdef cancel(self, Request request)
    cpdef Request wait(self, Communicator communicator, Request request)
    cpdef finalize(self)
    cpdef say_leave(self)
    cpdef send_pending(self)
    cpdef bint _nothing_pending(self) except -1
