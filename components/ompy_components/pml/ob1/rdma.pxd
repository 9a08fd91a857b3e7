cimport cython

from ompy cimport raw
from ompy.data.request cimport Request
from ompy.frameworks.bml cimport Rail
from ompy.frameworks.registration cimport Registration
from ompy.trace.sink cimport Trace
from ompy_components.pml.ob1.control cimport Control
from ompy_components.pml.ob1.rails cimport RdmaRails, Share, share_of
from ompy_components.pml.ob1.sendrequest cimport SendRequest
from ompy_components.pml.ob1.halves cimport SenderHalf
from ompy_components.pml.ob1.headers cimport check, fin_words
from ompy_components.pml.ob1.states cimport next_rdma_state, next_send_state

# the module's constants, in C
cdef long long FIN
cdef long long FIN_SIZE

cdef class Expected:
    cdef public unsigned long long id
    cdef public Request request
    cpdef finished(self, long long size)

cdef class RdmaFragment(Expected):
    cdef public object handle
    cdef public long long offset
    cdef public Rail rail
    cdef public long long size
    cdef public object state
    cpdef plan(self, Request request, Rail rail, long long offset, long long size)
    cpdef advance(self, event)

cdef class Offer(Expected):
    cdef Rdma rdma
    @cython.locals(request=SendRequest)
    cpdef finished(self, long long size)

cpdef bytes wire_of(handle)

cdef class Rdma:
    cdef Control _control
    cdef dict _expected
    cdef unsigned long long _next_id
    cdef object _ob1
    cdef Trace _trace
    cdef public RdmaRails rails
    cdef public SenderHalf sender
    cpdef unsigned long long expect(self, Expected expected) except 0
    cpdef Expected expected(self, unsigned long long number)
    @cython.locals(one=Expected)
    cpdef list expected_of(self, Request request)
    cpdef forget(self, Expected expected)
    @cython.locals(offer=Offer)
    cpdef unsigned long long offer(self, SendRequest request) except 0
    @cython.locals(offer=Offer)
    cpdef withdraw(self, SendRequest request)
    cpdef drop(self, Request request)
    @cython.locals(expected=Expected, size="long long", fragment_id="unsigned long long")
    cpdef fin_arrived(self, data)
    cpdef send_fin(self, RdmaFragment fragment, unsigned long long fragment_id, long long size)
    cpdef got(self, SendRequest request, long long size)
    cpdef register(self, Rail rail, memory, int access)
    @cython.locals(rail=Rail)
    cpdef list register_all(self, list rails, memory, int access)
    @cython.locals(share=Share)
    cpdef release(self, list shares)
    cpdef release_one(self, RdmaFragment fragment)
