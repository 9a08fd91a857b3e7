from ompy.frameworks.btl cimport BtlModule
from ompy_components.pml.ob1.matching cimport Fragment, Matching, PeerQueue, RecvRequest
from ompy_components.pml.ob1.rendezvous_receive cimport RendezvousReceive

cdef class Receiving:
    cdef object _ob1
    cdef object _note
    cdef object _clock
    cdef unsigned long long _next_id
    cdef public dict requests
    cdef public RendezvousReceive rendezvous
    cdef dict _orphans
    cpdef post(self, RecvRequest request)
    cpdef match_arrived(self, data)
    cpdef rndv_arrived(self, data)
    cpdef rget_arrived(self, BtlModule module, data)
    cdef _arrived(self, Matching matching, int context_id, Fragment fragment)
    cdef _match(self, Matching matching, PeerQueue queue, Fragment fragment)
    cpdef adopt(self, Matching matching)
    cpdef deliver(self, RecvRequest request, Fragment fragment)
    cdef _eager(self, RecvRequest request, int source, long tag, payload)
    cdef _rendezvous(self, RecvRequest request, Fragment fragment, payload)
    cpdef fragment_arrived(self, data)
    cpdef finish_if_here(self, RecvRequest request)
    cdef _truncated(self, RecvRequest request)
    cpdef cancel(self, RecvRequest request)
    cpdef fail_peer(self, proc, reason)
    cdef _note_arrived(self, int kind, int context_id, int source, long tag, int sequence, long long size)
