from ompy.frameworks.bml cimport BmlEndpoint
from ompy_components.pml.ob1.matching cimport Fragment, Matching, PeerQueue, RecvRequest

cdef class Receiving:
    cdef object _ob1
    cdef unsigned long long _next_id
    cdef public dict requests
    cdef dict _orphans
    cpdef post(self, RecvRequest request)
    cpdef match_arrived(self, data)
    cpdef rndv_arrived(self, data)
    cdef _arrived(self, Matching matching, int context_id, Fragment fragment)
    cdef _match(self, Matching matching, PeerQueue queue, Fragment fragment)
    cpdef adopt(self, Matching matching)
    cpdef deliver(self, RecvRequest request, Fragment fragment)
    cdef _eager(self, RecvRequest request, int source, long tag, payload)
    cdef _rendezvous(self, RecvRequest request, Fragment fragment, payload)
    cdef _acknowledge(self, RecvRequest request, unsigned long long send_id)
    cpdef bint send_control(self, BmlEndpoint endpoint, bytes header, int tag) except -1
    cpdef fragment_arrived(self, data)
    cdef _finish_if_here(self, RecvRequest request)
    cdef _truncated(self, RecvRequest request)
    cpdef cancel(self, RecvRequest request)
    cpdef fail_peer(self, proc, reason)
    cdef _note_arrived(self, int kind, int source, long tag, int sequence, long long size)
