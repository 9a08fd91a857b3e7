cimport cython

from ompy.data.convertor cimport Convertor
from ompy.frameworks.btl cimport Descriptor, Endpoint, ReceiveCallback
from ompy.frameworks.transfers cimport RdmaModule
from ompy_components.btl.tcp.endpoint cimport TcpEndpoint

# the module's constants, in C
cdef long long COMPLETED
cdef long long NOT_AVAILABLE
cdef long long REMOTE_WRITE
cdef long long WOULD_BLOCK
cdef long long WARM_ROUNDS

cdef class TcpModule(RdmaModule):
    cdef public dict _endpoints
    cdef public long long _free_list_max
    cdef public long _half_open_max
    cdef list _handlers
    cdef public long long _linger
    cdef public object _looking
    cdef public object _probes
    cdef public long _rounds
    cdef public object _values
    cdef public list _visitors
    cdef public long _watched
    cdef public long _connect_tries
    cdef public object guard
    cdef public long long handshake_timeout
    cdef public object interface
    cdef public object keeper
    cdef public object landing
    cdef public object listener
    cdef public long queued
    cdef public object readiness
    cdef public object registered
    cdef public long long silence
    cdef public TcpEndpoint warm
    cpdef bint begin_failover(self) except -1
    cpdef Endpoint reach(self, proc)
    @cython.locals(there=TcpEndpoint)
    cpdef bint has_room(self, Endpoint endpoint) except -1
    @cython.locals(inplace=bint)
    cpdef Descriptor prepare_src(self, Endpoint endpoint, Convertor convertor, long long offset, int order, int reserve, long long size, int flags)
    cpdef int send(self, Endpoint endpoint, Descriptor descriptor, int tag) except? -99
    cpdef int sendi(self, Endpoint endpoint, Convertor convertor, bytes header, long long payload_size, int order, int flags, int tag) except? -99
    cpdef int transfer(self, int access, Endpoint endpoint, Descriptor descriptor, unsigned long long identity, unsigned long long offset) except? -99
    cpdef register_mem(self, Endpoint endpoint, memory, int flags)
    cpdef deregister_mem(self, handle)
    @cython.locals(events=int)
    cpdef int poll(self) except -1
    cpdef bint arm(self) except -1
    @cython.locals(handler=ReceiveCallback)
    cpdef deliver(self, TcpEndpoint endpoint, int tag, fragment)
    cpdef bytes path(self, Endpoint endpoint)
    cpdef finalize(self)
