from ompy.frameworks.bml cimport BmlEndpoint, Rail
from ompy_components.pml.ob1.sendrequest cimport SendRequest
from ompy_components.pml.ob1.sending cimport Sending
from ompy_components.pml.ob1.headers cimport parse
from ompy_components.pml.ob1.rails cimport heaviest_first, next_share, share_out
from ompy_components.pml.ob1.states cimport next_send_state

cdef class SendRange:
    cdef public long long offset
    cdef public list shares

cdef class Streaming:
    cdef object _ob1
    cdef Sending _sending
    cdef int _depth
    cdef int _rails_max
    cpdef acknowledged(self, data)
    cpdef add_range(self, SendRequest request, long long offset, long long length)
    cpdef schedule(self, SendRequest request)
    cdef bint _stream(self, SendRequest request) except -1
    cpdef bint resume(self, SendRequest request) except -1
    cdef bint _send_next(self, SendRequest request) except -1
    cdef long long _send_fragment(self, Rail rail, SendRequest request, long long offset, long long left) except -1
