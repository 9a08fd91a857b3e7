cimport cython

from ompy cimport raw
from ompy.data.convertor cimport Convertor
from ompy.frameworks.btl cimport BtlModule
from ompy.trace.sink cimport Trace
from ompy_components.pml.ob1.headers cimport as_signed, check, parse, parse_registrations
from ompy_components.pml.ob1.matching cimport Fragment, Matching, PeerQueue, RecvRequest
from ompy_components.pml.ob1.rendezvous_receive cimport RendezvousReceive
from ompy_components.pml.ob1.states cimport next_receive_state

cdef class Receiving:
    cdef object _ob1
    cdef Trace _trace
    cdef public dict matchings
    cdef unsigned long long _next_id
    cdef public dict requests
    cdef public RendezvousReceive rendezvous
    cdef dict _orphans
    @cython.locals(matching=Matching, fragment=Fragment)
    cpdef post(self, RecvRequest request)
    @cython.locals(length="long long", first="unsigned long long", second="unsigned long long", context_id=int, source=int, tag=long, sequence=int, matching=Matching, queue=PeerQueue, request=RecvRequest)
    cpdef match_arrived(self, data)
    cpdef rndv_arrived(self, data)
    cpdef rget_arrived(self, BtlModule module, data)
    @cython.locals(queue=PeerQueue, following=Fragment)
    cdef _arrived(self, Matching matching, int context_id, Fragment fragment)
    @cython.locals(request=RecvRequest)
    cdef _match(self, Matching matching, PeerQueue queue, Fragment fragment)
    cpdef adopt(self, Matching matching)
    cpdef deliver(self, RecvRequest request, Fragment fragment)
    @cython.locals(length="long long", convertor=Convertor)
    cdef _eager(self, RecvRequest request, int source, long tag, data, Py_ssize_t start)
    cdef _rendezvous(self, RecvRequest request, Fragment fragment, payload)
    @cython.locals(request=RecvRequest)
    cpdef fragment_arrived(self, data)
    cpdef finish_if_here(self, RecvRequest request)
    cdef _truncated(self, RecvRequest request)
    cpdef cancel(self, RecvRequest request)
    cpdef fail_peer(self, proc, reason)
    cdef _note_arrived(self, int kind, int context_id, int source, long tag, int sequence, long long size)

cdef Fragment _whole(int flags, int source, long tag, int sequence, data)
