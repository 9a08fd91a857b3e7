cimport cython

from ompy.data.convertor cimport Convertor
from ompy.frameworks.bml cimport Rail
from ompy.frameworks.btl cimport BtlModule, Descriptor
from ompy.trace.sink cimport Trace
from ompy_components.pml.ob1.halves cimport SenderHalf
from ompy_components.pml.ob1.headers cimport place, rget_words
from ompy_components.pml.ob1.rails cimport Share, heaviest_first
from ompy_components.pml.ob1.rdma cimport Rdma, wire_of
from ompy_components.pml.ob1.sendrequest cimport SendRequest
from ompy_components.pml.ob1.selection cimport choose_large, first_payload

# the module's constants, in C
cdef long long BUFFERED

# the module's constants, in C
cdef long long BTL_OWNERSHIP
cdef long long GET
cdef long long NO_ORDER
cdef long long OUT_OF_RESOURCE
cdef long long PRIORITY
cdef long long REMOTE_READ
cdef long long SIGNAL
cdef long long CAN_PUT
cdef long long FLAG_ACK
cdef long long FLAG_BARE
cdef long long FLAG_WAITS
cdef long long RGET
cdef long long RNDV
cdef long long UNION_SIZE
cdef long long RGET_FLAGS

cdef class RendezvousSend:
    cdef object _ob1
    cdef Rdma _rdma
    cdef SenderHalf _sending
    cdef Trace _trace
    cpdef int start(self, Rail rail, SendRequest request, protocol) except? -99
    @cython.locals(first=Share)
    cdef _protocol(self, SendRequest request)
    @cython.locals(before=cython.longlong)
    cdef _protocol_of_pieces(self, SendRequest request)
    cdef _register(self, SendRequest request, memory, int wanted)
    @cython.locals(module=BtlModule, convertor=Convertor, descriptor=Descriptor, header=bytes, reserve=int, size=cython.longlong, sent=cython.longlong, result=int)
    cdef int _rndv(self, Rail rail, SendRequest request, protocol) except? -99
    @cython.locals(rail=Rail, share=Share, descriptor=Descriptor, data=bytes, before=cython.longlong, end=cython.longlong)
    cdef int _rget(self, SendRequest request) except? -99
    cpdef bytes rndv_header(self, SendRequest request, int flags)
    @cython.locals(flags=int)
    cpdef bytes rget_header(self, SendRequest request)

cpdef long long before_memory(SendRequest request) except -1
@cython.locals(share=Share, data=bytes, record=bytes)
cdef bytes _others(list shares, long long room)
