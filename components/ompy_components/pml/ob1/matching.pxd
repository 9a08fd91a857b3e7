cimport cython

from ompy.data.convertor cimport Convertor
from ompy.data.request cimport Request
from ompy.frameworks.communicator cimport Communicator
from ompy.frameworks.pml cimport MatchedMessage
from ompy_components.pml.ob1.flow cimport Flow, PeerFlow
from ompy_components.pml.ob1.fragment cimport Fragment
from ompy_components.pml.ob1.unexpected cimport UnexpectedQueue

# the module's constants, in C
cdef long long ANY_SOURCE
cdef long long ANY_TAG
cdef long long SCANNED
cdef long long SEQUENCE_MASK

cdef class Message(MatchedMessage):
    cdef public Communicator communicator
    cdef public Fragment fragment

cdef class RecvRequest(Request):
    cdef public Communicator communicator
    cdef public Convertor convertor
    cdef public int wanted_source
    cdef public long wanted_tag
    cdef public unsigned long long posted
    cdef public bint queued
    cdef public RecvRequest before
    cdef public RecvRequest after
    cdef public RecvRequest before_of_tag
    cdef public RecvRequest after_of_tag
    cdef public long long arrived
    cdef public object state
    cdef public unsigned long long id
    cdef public long long sequence
    cdef public unsigned long long peer_request
    cdef public object protocol
    cdef public object incoming
    cdef prepare(self, Communicator communicator, Convertor convertor, int source, long tag)
    cpdef open_rendezvous(self, unsigned long long id, unsigned long long peer_request)

cdef class ReceiveQueue:
    cdef Py_ssize_t _count
    cdef RecvRequest _first
    cdef RecvRequest _last
    cdef dict _firsts
    cdef dict _lasts
    @cython.locals(last=RecvRequest)
    cpdef append(self, RecvRequest request)
    @cython.locals(request=RecvRequest)
    cpdef RecvRequest find(self, long tag)
    @cython.locals(exact=RecvRequest, wild=RecvRequest)
    cdef RecvRequest _indexed(self, long tag)
    cpdef bint remove(self, RecvRequest request) except -1
    @cython.locals(before=RecvRequest, after=RecvRequest)
    cdef _unlink(self, RecvRequest request)
    @cython.locals(request=RecvRequest)
    cpdef list members(self)
    @cython.locals(request=RecvRequest)
    cdef _index_all(self)
    @cython.locals(firsts=dict, lasts=dict, last=RecvRequest)
    cdef _index(self, RecvRequest request)
    @cython.locals(firsts=dict, lasts=dict, before=RecvRequest, after=RecvRequest)
    cdef _unindex(self, RecvRequest request)

cdef class PeerQueue:
    cdef public long long expected
    cdef public long long sent
    cdef public ReceiveQueue posted
    cdef public PeerFlow flow
    cdef public UnexpectedQueue unexpected
    cdef public dict early
    cpdef long long next_sequence(self) except -1
    cpdef list held(self)

cdef class Matching:
    cdef public Communicator communicator
    cdef public ReceiveQueue wild
    cdef Flow _flow
    cdef list _peers
    cdef unsigned long long _posted
    cdef int _last_probed
    @cython.locals(queue=PeerQueue)
    cpdef PeerQueue peer(self, int rank)
    cpdef PeerQueue known_peer(self, int rank)
    @cython.locals(queue=PeerQueue)
    cpdef bint waits_for(self, int rank) except -1
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

@cython.locals(fragment=Fragment)
cdef Fragment _unexpected(PeerQueue queue, long tag, bint remove)
