cimport cython

from ompy.frameworks.bml cimport Rail
from ompy.frameworks.btl cimport BtlModule, CompletionCallback, Descriptor, Endpoint
from ompy.trace.sink cimport Trace
from ompy_components.pml.ob1.halves cimport ReceiverHalf
from ompy_components.pml.ob1.fragment cimport RemoteMemory
from ompy_components.pml.ob1.matching cimport RecvRequest
from ompy_components.pml.ob1.rails cimport Share, get_alignment, next_share, piece_of
from ompy_components.pml.ob1.rdma cimport Rdma, RdmaFragment
from ompy_components.pml.ob1.rdma_put cimport Incoming, PutRequests

# the module's constants, in C
cdef long long COMPLETED
cdef long long NO_ORDER
cdef long long NOT_AVAILABLE
cdef long long OUT_OF_RESOURCE
cdef long long CAN_PUT

cdef class Read(RdmaFragment):
    pass

cdef class Gets(CompletionCallback):
    cdef object _ob1
    cdef PutRequests _puts
    cdef Rdma _rdma
    cdef ReceiverHalf _receiver
    cdef Trace _trace
    @cython.locals(incoming=Incoming, share=Share, module=BtlModule, offset=cython.longlong, size=cython.longlong, result=int, alignment=long)
    cpdef bint proceed(self, RecvRequest request, RemoteMemory remote) except -1
    cpdef begin(self, RecvRequest request, RemoteMemory remote)
    @cython.locals(incoming=Incoming, fragment=Read, rail=Rail, result=int)
    cdef int _get(self, RecvRequest request, Share share, RemoteMemory remote, long long offset, long long size) except? -99
    cpdef completed(self, BtlModule module, Endpoint endpoint, Descriptor descriptor, int status)
    @cython.locals(request=RecvRequest, incoming=Incoming)
    cdef _done(self, Read fragment, int status)
    @cython.locals(rail=Rail, module=BtlModule, end=cython.longlong, piece=cython.longlong)
    cdef _otherwise(self, RecvRequest request, Share share, long long offset, long long size, int result)
