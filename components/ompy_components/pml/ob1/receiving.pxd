cimport cython

from ompy cimport raw
from ompy.data.convertor cimport Convertor
from ompy.frameworks.btl cimport BtlModule
from ompy.trace.sink cimport Trace
from ompy_components.pml.ob1.flow cimport Flow, PeerFlow
from ompy_components.pml.ob1.fragment cimport Fragment, RemoteMemory, fragment_of
from ompy_components.pml.ob1.halves cimport ReceiverHalf
from ompy_components.pml.ob1.headers cimport as_signed, check, parse, parse_registrations
from ompy_components.pml.ob1.matching cimport Matching, PeerQueue, RecvRequest
from ompy_components.pml.ob1.rdma cimport Rdma
from ompy_components.pml.ob1.rdma_put cimport Incoming
from ompy_components.pml.ob1.rendezvous_receive cimport RendezvousReceive
from ompy_components.pml.ob1.states cimport next_receive_state

# the module's constants, in C
cdef long long ERR_INTERN
cdef long long ERR_PROC_FAILED
cdef long long ERR_TRUNCATE
cdef long long FLAG_ACK
cdef long long FRAG
cdef long long FRAG_SIZE
cdef long long MATCH
cdef long long MATCH_SIZE
cdef long long MESSAGE_COST
cdef long long PAYLOAD_MOST
cdef long long RGET
cdef long long RGET_SIZE
cdef long long RNDV
cdef long long RNDV_SIZE
cdef long long SEQUENCES
cdef long long SEQUENCE_MASK
cdef long long SUCCESS

cdef class Receiving(ReceiverHalf):
    cdef object _ob1
    cdef Trace _trace
    cdef public dict matchings
    cdef Matching _recent
    cdef unsigned long long _next_id
    cdef Rdma _rdma
    cdef public RendezvousReceive rendezvous
    cdef public dict orphans
    cdef public bint orphaned
    cdef Flow _flow
    cdef public bint leavers
    @cython.locals(matching=Matching, fragment=Fragment)
    cpdef post(self, RecvRequest request)
    @cython.locals(matching=Matching)
    cdef Matching _matching(self, int context_id)
    @cython.locals(matching=Matching, queue=PeerQueue, fragment=Fragment)
    cpdef forget(self, int context_id)
    @cython.locals(length="long long", first="unsigned long long", second="unsigned long long", context_id=int, source=int, tag=long, sequence="long long", matching=Matching, queue=PeerQueue, flow=PeerFlow, request=RecvRequest)
    cpdef match_arrived(self, data)
    cpdef rndv_arrived(self, data)
    cpdef Fragment rndv_fragment(self, data)
    @cython.locals(fragment=Fragment)
    cpdef rget_arrived(self, BtlModule module, data)
    @cython.locals(length="long long", first="unsigned long long", second="unsigned long long", send_id="unsigned long long", context_id=int, source=int, tag=long, sequence="long long", flags=int, fragment=Fragment, remote=RemoteMemory)
    cpdef Fragment rget_fragment(self, BtlModule module, data)
    cpdef arrived(self, int context_id, Fragment fragment)
    @cython.locals(sequence="long long", ahead="long long")
    cpdef out_of_turn(self, PeerQueue queue, Fragment fragment)
    @cython.locals(queue=PeerQueue, following=Fragment)
    cdef _arrived(self, Matching matching, int context_id, Fragment fragment)
    @cython.locals(request=RecvRequest)
    cdef _match(self, Matching matching, PeerQueue queue, Fragment fragment)
    cdef _wait(self, PeerQueue queue, Fragment fragment)
    @cython.locals(fragment=Fragment, queue=PeerQueue)
    cpdef adopt(self, Matching matching)
    cpdef deliver(self, RecvRequest request, Fragment fragment)
    @cython.locals(length="long long", convertor=Convertor)
    cdef _eager(self, RecvRequest request, int source, long tag, data, Py_ssize_t start)
    cdef _rendezvous(self, RecvRequest request, Fragment fragment, payload)
    @cython.locals(request=RecvRequest, offset="long long", receive_id="unsigned long long")
    cpdef fragment_arrived(self, data)
    @cython.locals(incoming=Incoming)
    cpdef unknown(self, int tag, unsigned long long number)
    cpdef finish_if_here(self, RecvRequest request)
    cdef _truncated(self, RecvRequest request)
    cpdef cancel(self, RecvRequest request)
    cpdef fail_peer(self, proc, reason)
    cdef _note_arrived(self, int kind, int context_id, int source, long tag, long long sequence, long long size)

@cython.locals(made=RemoteMemory, size=int, begin="long long", end="long long")
cdef RemoteMemory _remote(BtlModule module, data)
cdef Fragment _whole(int flags, int source, long tag, long long sequence, data)
