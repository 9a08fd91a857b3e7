cimport cython

from ompy.data.request cimport Request
from ompy_components.pml.bfo.headers cimport Fin, fin_words, parse_fin
from ompy_components.pml.ob1.matching cimport RecvRequest
from ompy_components.pml.ob1.rdma cimport Expected, Offer, Rdma, RdmaFragment
from ompy_components.pml.ob1.sendrequest cimport SendRequest

# the module's constants, in C
cdef long long FIN
cdef long long FLAG_LOST
cdef long long UNREACHABLE

cdef class BfoRdma(Rdma):
    cdef public dict _told
    cdef public object bfo
    cpdef send_fin(self, RdmaFragment fragment, unsigned long long fragment_id, long long size)
    cpdef send_lost(self, RdmaFragment fragment, unsigned long long fragment_id)
    @cython.locals(request=Request, sent=SendRequest, posted=RecvRequest, context_id=int, own=int, number="long long", at="long long", generation="unsigned long long")
    cdef bytes _fin(self, int flags, RdmaFragment fragment, unsigned long long fragment_id, long long size)
    @cython.locals(fin=Fin, expected=Expected)
    cpdef fin_arrived(self, data)
    cpdef forget(self, Expected expected)
    @cython.locals(request=Request)
    cdef bint _is_new(self, Expected expected, Fin fin) except -1

@cython.locals(sent=SendRequest, posted=RecvRequest, context_id=int, number="long long")
cdef bint _is_of(Fin fin, Request request) except -1
cdef unsigned long long _generation(dict restarts, Request request) except? 99
