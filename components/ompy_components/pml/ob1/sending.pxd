from ompy.data.convertor cimport Convertor
from ompy.data.request cimport Request
from ompy.frameworks.bml cimport BmlEndpoint, Rail
from ompy.frameworks.btl cimport BtlModule, CompletionCallback, Descriptor, Endpoint
from ompy.frameworks.communicator cimport Communicator

cdef class SendRequest(Request):
    cdef public int context_id
    cdef public int own_rank
    cdef public int sequence
    cdef public Convertor convertor
    cdef public BmlEndpoint endpoint
    cdef public int mode
    cdef public unsigned long long id
    cdef public unsigned long long peer_request
    cdef public object state
    cdef public int in_flight
    cdef public long long delivered
    cdef public list ranges
    cdef public bint scheduling
    cdef public bint waiting

cdef class SendRange:
    cdef public long long offset
    cdef public list shares
    cdef public int turn

cdef class FragmentDone(CompletionCallback):
    cdef Sending _sending
    cpdef completed(self, BtlModule module, Endpoint endpoint, Descriptor descriptor, int status)

cdef class Sending:
    cdef object _ob1
    cdef int _depth
    cdef int _rails_max
    cdef FragmentDone _done
    cdef unsigned long long _next_id
    cdef public dict requests
    cpdef SendRequest begin(self, Communicator communicator, Convertor convertor, int target, long tag, int mode)
    cpdef bint start(self, SendRequest request) except -1
    cdef int _start_on(self, Rail rail, SendRequest request) except? -99
    cdef bint _immediate(self, Rail rail, SendRequest request) except -1
    cdef int _prepared(self, Rail rail, SendRequest request) except? -99
    cdef int _allocated(self, Rail rail, SendRequest request) except? -99
    cdef int _rendezvous(self, Rail rail, SendRequest request) except? -99
    cdef int _send(self, Rail rail, SendRequest request, Descriptor descriptor, int tag) except? -99
    cpdef fragment_done(self, SendRequest request, Descriptor descriptor, int status)
    cdef _account(self, SendRequest request, int tag, long long payload)
    cpdef acknowledged(self, data)
    cdef SendRange _share(self, BmlEndpoint endpoint, long long offset, long long length)
    cpdef schedule(self, SendRequest request)
    cdef bint _stream(self, SendRequest request) except -1
    cpdef bint resume(self, SendRequest request) except -1
    cdef bint _send_next(self, SendRequest request) except -1
    cdef long long _send_fragment(self, Rail rail, SendRequest request, long long offset, long long left) except -1
    cdef _finish_if_delivered(self, SendRequest request)
    cpdef fail_peer(self, proc, reason)
    cdef _path_failed(self, SendRequest request, Rail rail)
    cdef _note_sent(self, SendRequest request, int tag, long long payload)
