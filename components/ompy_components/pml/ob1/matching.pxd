cimport cython

from ompy.data.convertor cimport Convertor
from ompy.data.request cimport Request
from ompy.frameworks.btl cimport BtlModule
from ompy.frameworks.communicator cimport Communicator
from ompy.frameworks.pml cimport MatchedMessage

# the module's constants, in C
cdef long long ANY_SOURCE
cdef long long SEQUENCE_MASK

cdef class RemoteMemory:
    cdef public long long address
    cdef public unsigned long long fragment_id
    cdef public bytes handle
    cdef public BtlModule module
    cdef public list others

cdef class Fragment:
    cdef public int kind
    cdef public int flags
    cdef public int source
    cdef public long tag
    cdef public int sequence
    cdef public long long length
    cdef public unsigned long long sender_request
    cdef public object payload
    cdef public RemoteMemory remote
    cpdef keep(self)

@cython.locals(made=Fragment)
cpdef Fragment fragment_of(int kind, int flags, int source, long tag, int sequence, long long length, unsigned long long sender_request, object payload)

cdef class Message(MatchedMessage):
    cdef public Communicator communicator
    cdef public Fragment fragment

cdef class RecvRequest(Request):
    cdef public Communicator communicator
    cdef public Convertor convertor
    cdef public int wanted_source
    cdef public long wanted_tag
    cdef public unsigned long long posted
    cdef public long long arrived
    cdef public object state
    cdef public unsigned long long id
    cdef public int sequence
    cdef public unsigned long long peer_request
    cdef public object protocol
    cdef public object incoming
    cdef prepare(self, Communicator communicator, Convertor convertor, int source, long tag)
    cpdef open_rendezvous(self, unsigned long long id, unsigned long long peer_request)

cdef class ReceiveQueue:
    cdef RecvRequest _first
    cdef list _others
    cpdef append(self, RecvRequest request)
    @cython.locals(first=RecvRequest, request=RecvRequest)
    cpdef RecvRequest find(self, long tag)
    @cython.locals(index=Py_ssize_t)
    cpdef bint remove(self, RecvRequest request) except -1
    cpdef list members(self)

cdef class PeerQueue:
    cdef public int expected
    cdef public int sent
    cdef public ReceiveQueue posted
    cdef public list unexpected
    cdef public dict early

cdef class Matching:
    cdef public Communicator communicator
    cdef public ReceiveQueue wild
    cdef list _peers
    cdef unsigned long long _posted
    cdef int _last_probed
    @cython.locals(queue=PeerQueue)
    cpdef PeerQueue peer(self, int rank)
    @cython.locals(queue=PeerQueue)
    cpdef int next_sequence(self, int target) except -1
    @cython.locals(fragment=Fragment)
    cpdef Fragment post(self, RecvRequest request)
    @cython.locals(specific=RecvRequest, wild=RecvRequest)
    cpdef RecvRequest claim(self, PeerQueue queue, long tag)
    cpdef Fragment peek(self, int source, long tag)
    cpdef Fragment take(self, int source, long tag)
    cpdef bint cancel(self, RecvRequest request) except -1
    cpdef list forget_source(self, proc)
    @cython.locals(queue=PeerQueue, fragment=Fragment, size=Py_ssize_t, step=Py_ssize_t, rank=Py_ssize_t)
    cdef Fragment _find(self, int source, long tag, bint remove)

@cython.locals(made=RecvRequest)
cpdef RecvRequest receive_request(Communicator communicator, Convertor convertor, int source, long tag)
cpdef bint fits(long wanted, long tag) except -1

@cython.locals(fragment=Fragment, index=Py_ssize_t)
cdef Fragment _unexpected(PeerQueue queue, long tag, bint remove)
