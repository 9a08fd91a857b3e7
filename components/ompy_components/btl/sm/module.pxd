cimport cython

from ompy cimport raw
from ompy.data.convertor cimport Convertor
from ompy.frameworks.btl cimport Descriptor, Endpoint, ReceiveCallback
from ompy.frameworks.transfers cimport RdmaModule
from ompy.net.ring cimport RingReader, RingWriter
from ompy_components.btl.sm.endpoint cimport SmDescriptor, SmEndpoint
from ompy_components.btl.sm.remote cimport RemoteMemory

cdef class Inbox:
    cdef public SmEndpoint peer
    cdef public RingReader reader
    cdef public list views
    @cython.locals(reader=RingReader)
    cdef payload(self, memory)

cdef class SmModule(RdmaModule):
    cdef object _layout
    cdef object _memory
    cdef unsigned long long[::1] _words
    cdef int _local_rank
    cdef long _own_parked
    cdef list _handlers
    cdef list _free
    cdef list _in_flight
    cdef long _waiting
    cdef bint _starved
    cdef dict _endpoints
    cdef list _inboxes
    cdef public RemoteMemory remote
    cdef _connect(self, proc, int slots)
    cpdef Endpoint reach(self, proc)
    cpdef Descriptor alloc(self, Endpoint endpoint, int order, long long size, int flags)
    cdef SmDescriptor _descriptor(self, Endpoint endpoint, long long size, int flags, int order)
    cpdef free(self, Descriptor descriptor)
    cpdef Descriptor prepare_src(self, Endpoint endpoint, Convertor convertor, long long offset, int order, int reserve, long long size, int flags)
    cpdef int send(self, Endpoint endpoint, Descriptor descriptor, int tag) except? -99
    @cython.locals(writer=RingWriter, begin="long long", total="long long", at="long long")
    cpdef int sendi(self, Endpoint endpoint, Convertor convertor, bytes header, long long payload_size, int order, int flags, int tag) except? -99
    @cython.locals(at="long long", size="long long", start="long long")
    cdef bint _push(self, SmEndpoint endpoint, SmDescriptor descriptor) except -1
    cdef _ring(self, SmEndpoint endpoint)
    @cython.locals(events=int, inbox=Inbox)
    cpdef int poll(self) except -1
    @cython.locals(reader=RingReader, count=int, start="long long", block="long long", handler=ReceiveCallback)
    cdef int _drain(self, Inbox inbox) except -1
    cdef int _reap(self) except -1
    @cython.locals(start="long long")
    cpdef bint _is_read(self, SmDescriptor descriptor) except -1
    cdef int _flush(self) except -1
    @cython.locals(inbox=Inbox)
    cpdef bint arm(self) except -1
    cdef bint _room_for_waiting(self) except -1
    cpdef disarm(self)
    cpdef finalize(self)
    cdef _end(self, SmEndpoint endpoint, SmDescriptor descriptor, int status)
    cpdef bint _flushed(self) except -1
