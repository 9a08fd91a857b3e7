cimport cython

from ompy.data.convertor cimport Convertor
from ompy.data.request cimport Request
from ompy.frameworks.bml cimport BmlEndpoint
from ompy.frameworks.communicator cimport Communicator

cdef class SendRequest(Request):
    cdef public int context_id
    cdef public int own_rank
    cdef public long long sequence
    cdef public Convertor convertor
    cdef public BmlEndpoint endpoint
    cdef public int mode
    cdef public bint bare
    cdef public bint blocking
    cdef public unsigned long long id
    cdef public int in_flight
    cdef public long long delivered
    cdef public object protocol
    cdef public object offer
    cdef public unsigned long long peer_request
    cdef public object state
    cdef public list ranges
    cdef public list registered
    cdef public bint answering
    cdef public bint scheduling
    cdef public bint waiting
    cdef prepare(self, Communicator communicator, Convertor convertor, BmlEndpoint endpoint, int target, long tag, int mode, long long sequence)
    cpdef open_rendezvous(self, unsigned long long id)

@cython.locals(made=SendRequest)
cpdef SendRequest send_request(Communicator communicator, Convertor convertor, BmlEndpoint endpoint, int target, long tag, int mode, long long sequence)
