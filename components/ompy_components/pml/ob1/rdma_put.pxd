cimport cython

from ompy cimport raw
from ompy.frameworks.bml cimport Rail
from ompy.frameworks.btl cimport BtlModule, CompletionCallback, Descriptor, Endpoint
from ompy.trace.sink cimport Trace
from ompy_components.pml.ob1.control cimport Control
from ompy_components.pml.ob1.halves cimport ReceiverHalf, SenderHalf
from ompy_components.pml.ob1.matching cimport RecvRequest
from ompy_components.pml.ob1.rails cimport Share, find_rail, next_share, piece_of, put_alignment
from ompy_components.pml.ob1.rdma cimport Rdma, RdmaFragment, wire_of
from ompy_components.pml.ob1.sendrequest cimport SendRequest
from ompy_components.pml.ob1.headers cimport check, put_words
from ompy_components.pml.ob1.states cimport next_send_state

# the module's constants, in C
cdef long long ERR_INTERN
cdef long long COMPLETED
cdef long long NO_ORDER
cdef long long NOT_AVAILABLE
cdef long long OUT_OF_RESOURCE
cdef long long REMOTE_READ
cdef long long REMOTE_WRITE
cdef long long FLAG_ACK
cdef long long PUT
cdef long long PUT_SIZE

cdef class Incoming:
    cdef public bint acknowledge
    cdef public long long offset
    cdef public int outstanding
    cdef public unsigned long long send_id
    cdef public list shares
    cdef public object view

@cython.locals(made=Incoming)
cpdef Incoming incoming_by_rdma(unsigned long long send_id, view, list shares, long long offset)

cdef class Wanted(RdmaFragment):
    cdef PutRequests puts
    cpdef finished(self, long long size)

cdef class PutRequests:
    cdef Control _control
    cdef int _depth
    cdef object _ob1
    cdef Rdma _rdma
    cdef ReceiverHalf _receiver
    cdef Trace _trace
    @cython.locals(incoming=Incoming, share=Share, size=cython.longlong)
    cpdef schedule(self, RecvRequest request)
    @cython.locals(module=BtlModule, limit=cython.longlong, frag_size=cython.longlong)
    cpdef long long limit(self, Share share) except -1
    cdef Share _next_share(self, Incoming incoming)
    @cython.locals(incoming=Incoming, rail=Rail, fragment=Wanted, address="unsigned long long", flags=int, number="unsigned long long")
    cpdef bint ask(self, RecvRequest request, Share share, long long offset, long long size) except -1
    cpdef asked(self, Wanted fragment)
    @cython.locals(request=RecvRequest, incoming=Incoming)
    cpdef finished(self, Wanted fragment, long long size)

cdef class Write(RdmaFragment):
    cdef public unsigned long long address
    cdef public unsigned long long peer_fragment
    cdef public object remote_handle

cdef class PutWrites(CompletionCallback):
    cdef object _ob1
    cdef Rdma _rdma
    cdef SenderHalf _sending
    cdef Trace _trace
    @cython.locals(request=SendRequest, rail=Rail, fragment=Write, send_id="unsigned long long", offset="long long", size="long long")
    cpdef arrived(self, BtlModule module, Endpoint endpoint, data)
    @cython.locals(request=SendRequest, rail=Rail, result=int, first=cython.longlong)
    cpdef bint start(self, Write fragment) except -1
    cpdef completed(self, BtlModule module, Endpoint endpoint, Descriptor descriptor, int status)
    @cython.locals(request=SendRequest)
    cdef _done(self, Write fragment, int status)
    @cython.locals(request=SendRequest)
    cpdef fall_back(self, Write fragment, int status)

@cython.locals(share=Share)
cdef _registration(SendRequest request, Rail rail)
