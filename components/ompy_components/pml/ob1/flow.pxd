cimport cython

from ompy cimport raw
from ompy.frameworks.proc cimport Proc
from ompy_components.pml.ob1.fragment cimport Fragment
from ompy_components.pml.ob1.headers cimport check, credit_words
from ompy_components.pml.ob1.sendrequest cimport SendRequest

# the module's constants, in C
cdef long long BUFFERED
cdef long long CREDIT
cdef long long CREDIT_SIZE
cdef long long ERR_PROC_FAILED
cdef long long FLAG_ASK
cdef long long FLAG_BARE
cdef long long _COST
cdef long long _MOST
cdef long long _NO_LIMIT

cdef class PeerFlow:
    cdef public Proc proc
    cdef public long long sent
    cdef public long long sent_max
    cdef public long long spent
    cdef public long long spent_max
    cdef public object waiting
    cdef public bint polled
    cdef public long long taken
    cdef public long long taken_next
    cdef public long long back
    cdef public long long taken_step
    cdef public long long back_next
    cdef public long long back_step
    cdef public long long orphans

cdef class Flow:
    cdef object _ob1
    cdef public dict peers
    cdef public long long window
    cdef long long _bytes
    @cython.locals(peer=PeerFlow)
    cpdef PeerFlow peer(self, Proc proc)
    @cython.locals(size="long long", cost="long long")
    cpdef charge(self, PeerFlow peer, SendRequest request)
    cpdef hold(self, PeerFlow peer, SendRequest request)
    @cython.locals(peer=PeerFlow, sent_max="long long", spent_max="long long")
    cpdef credit_arrived(self, Proc proc, data)
    @cython.locals(request=SendRequest)
    cdef _release(self, PeerFlow peer)
    cpdef give_back(self, PeerFlow peer, Fragment fragment)
    @cython.locals(peer=PeerFlow)
    cpdef orphan_came(self, Proc proc)
    cpdef tell(self, PeerFlow peer)
    cdef _tell(self, PeerFlow peer, int flags)
    cdef _pace(self, PeerFlow peer, long long window)

@cython.locals(length="long long")
cpdef long long cost_of(Fragment fragment) except -1
