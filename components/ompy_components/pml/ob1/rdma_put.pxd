cimport cython

from ompy.frameworks.bml cimport Rail
from ompy.frameworks.btl cimport BtlModule, CompletionCallback, Descriptor, Endpoint
from ompy_components.pml.ob1.matching cimport RecvRequest
from ompy_components.pml.ob1.rails cimport Share, find_rail, next_share, piece_of, put_alignment
from ompy_components.pml.ob1.rdma cimport RdmaFragment
from ompy_components.pml.ob1.sendrequest cimport SendRequest
from ompy_components.pml.ob1.headers cimport parse
from ompy_components.pml.ob1.states cimport next_send_state

cdef class Incoming:
    cdef public bint acknowledge
    cdef public long long offset
    cdef public int outstanding
    cdef public unsigned long long send_id
    cdef public list shares
    cdef public object view

cdef class Wanted(RdmaFragment):
    cdef PutRequests _puts
    cpdef finished(self, long long size)

cdef class PutRequests:
    cdef int _depth
    cdef object _ob1
    @cython.locals(incoming=Incoming, share=Share, module=BtlModule, limit=cython.longlong, size=cython.longlong, frag_size=cython.longlong)
    cpdef schedule(self, RecvRequest request)
    cdef Share _next_share(self, Incoming incoming)
    @cython.locals(incoming=Incoming, rail=Rail, fragment=Wanted)
    cpdef bint ask(self, RecvRequest request, Share share, long long offset, long long size) except -1
    @cython.locals(request=RecvRequest, incoming=Incoming)
    cpdef finished(self, Wanted fragment, long long size)

cdef class Write(RdmaFragment):
    cdef public unsigned long long address
    cdef public unsigned long long peer_fragment
    cdef public object remote_handle

cdef class PutWrites(CompletionCallback):
    cdef object _ob1
    cdef object _sending
    @cython.locals(request=SendRequest, rail=Rail, fragment=Write)
    cpdef arrived(self, BtlModule module, Endpoint endpoint, data)
    @cython.locals(request=SendRequest, rail=Rail, first=cython.longlong)
    cpdef bint start(self, Write fragment) except -1
    cpdef completed(self, BtlModule module, Endpoint endpoint, Descriptor descriptor, int status)
    @cython.locals(request=SendRequest)
    cdef _done(self, Write fragment, int status)
    @cython.locals(request=SendRequest)
    cdef _fall_back(self, Write fragment, int status)
