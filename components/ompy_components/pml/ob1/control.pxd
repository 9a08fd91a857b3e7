cimport cython

from ompy.frameworks.bml cimport BmlEndpoint, Rail
from ompy.frameworks.btl cimport BtlModule, CompletionCallback, Descriptor
from ompy.trace.sink cimport Trace
from ompy_components.pml.ob1.headers cimport place

# the module's constants, in C
cdef long long BTL_OWNERSHIP
cdef long long NO_ORDER
cdef long long OUT_OF_RESOURCE
cdef long long PRIORITY
cdef long long SIGNAL
cdef long long UNREACHABLE

cdef class Control:
    cdef object _ob1
    cdef Trace _trace
    cdef CompletionCallback _callback
    cdef object _names
    cpdef send(self, BmlEndpoint endpoint, bytes message, int tag)
    cpdef send_on(self, Rail rail, bytes message, int tag)
    @cython.locals(rail=Rail, result=int, room_later=bint)
    cpdef bint _try_any(self, BmlEndpoint endpoint, bytes message, int tag) except -1
    @cython.locals(result=int)
    cpdef bint attempt(self, Rail rail, bytes message, int tag) except -1
    cpdef refused(self, Rail rail, bytes message, int tag)
    @cython.locals(module=BtlModule, descriptor=Descriptor)
    cdef int _put_out(self, Rail rail, bytes message, int tag) except? -99
