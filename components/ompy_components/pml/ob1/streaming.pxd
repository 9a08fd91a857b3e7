cimport cython

from ompy.frameworks.bml cimport BmlEndpoint, Rail
from ompy_components.pml.ob1.sendrequest cimport SendRequest
from ompy.trace.sink cimport Trace
from ompy_components.pml.ob1.halves cimport SenderHalf
from ompy_components.pml.ob1.headers cimport parse, place
from ompy_components.pml.ob1.rails cimport heaviest_first, next_share, share_out
from ompy_components.pml.ob1.states cimport next_send_state

# the module's constants, in C
cdef long long BTL_OWNERSHIP
cdef long long NO_ORDER
cdef long long OUT_OF_RESOURCE
cdef long long SEND_ALWAYS_CALLBACK
cdef long long SIGNAL
cdef long long UNHURRIED
cdef long long ACK
cdef long long FLAG_NORDMA
cdef long long FRAG
cdef long long FRAG_SIZE
cdef long long _FRAG_FLAGS

cdef class SendRange:
    cdef public long long offset
    cdef public list shares
    cdef public long long flags

cdef class Streaming:
    cdef object _ob1
    cdef SenderHalf _sending
    cdef Trace _trace
    cdef int _depth
    cdef int _rails_max
    cpdef acknowledged(self, data)
    @cython.locals(rails=list, rail=Rail)
    cdef bint _puts_outlast(self, SendRequest request, long long offset, long long end) except -1
    cpdef add_range(self, SendRequest request, long long offset, long long length, long long flags=*)
    cpdef schedule(self, SendRequest request)
    cdef bint _stream(self, SendRequest request) except -1
    cpdef bint resume(self, SendRequest request) except -1
    @cython.locals(piece=SendRange)
    cdef bint _send_next(self, SendRequest request) except -1
    cdef long long _send_fragment(self, Rail rail, SendRequest request, SendRange piece, long long left) except -1
