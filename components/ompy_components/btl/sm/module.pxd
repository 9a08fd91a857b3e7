cimport cython

from ompy cimport raw
from ompy.data.convertor cimport Convertor
from ompy.frameworks.btl cimport Descriptor, Endpoint, ReceiveCallback
from ompy.frameworks.transfers cimport RdmaModule
from ompy.net.ring cimport RingReader, RingWriter
from ompy_components.btl.sm.endpoint cimport SmDescriptor, SmEndpoint, descriptor_of
from ompy_components.btl.sm.remote cimport RemoteMemory

# the module's constants, in C
cdef long long BTL_OWNERSHIP
cdef long long COMPLETED
cdef long long GET
cdef long long NOT_AVAILABLE
cdef long long PUT
cdef long long QUEUED
cdef long long RDMA_COMPLETION
cdef long long SEND
cdef long long SEND_ALWAYS_CALLBACK
cdef long long UNREACHABLE
cdef long long HANDLE_SIZE
cdef long long CACHE_LINE
cdef long long AWAKE
cdef long long FREE
cdef long long HUNGRY
cdef long long PARKED
cdef long long TAKEN
cdef long long INLINE
cdef long long BLOCK
cdef long long DRAIN_MAX
cdef long long SPARES_MAX
cdef long long QUEUE_MAX

cdef class Inbox:
    cdef public SmEndpoint peer
    cdef public RingReader reader
    cdef public list views
    @cython.locals(reader=RingReader)
    cdef payload(self, memory)

cdef class SmModule(RdmaModule):
    cdef object _layout
    cdef long long _block_room
    cdef long long _block_size
    cdef long long _pool
    cdef public list _unread
    cdef object _memory
    cdef unsigned long long[::1] _words
    cdef int _local_rank
    cdef long _own_parked
    cdef list _handlers
    cdef public list _free
    cdef list _in_flight
    cdef long _waiting
    cdef dict _spares
    cdef bint _starved
    cdef dict _endpoints
    cdef list _inboxes
    cdef public RemoteMemory remote
    cdef _connect(self, proc, int slots)
    cpdef bint begin_failover(self) except -1
    cpdef Endpoint reach(self, proc)
    cpdef Descriptor alloc(self, Endpoint endpoint, int order, long long size, int flags)
    @cython.locals(spare=SmDescriptor)
    cdef SmDescriptor _descriptor(self, SmEndpoint endpoint, long long size, int flags, int order)
    cdef long long _place_of(self, long long block) except -1
    cdef long long _take_block(self) except -2
    @cython.locals(descriptor=SmDescriptor, endpoint=SmEndpoint)
    cdef _reclaim(self)
    @cython.locals(block="long long", start="long long", at="long long", begin="long long", descriptor=SmDescriptor)
    cdef int _send_block(self, SmEndpoint endpoint, Convertor convertor, bytes header, long long payload_size, int tag) except? -99
    cpdef free(self, Descriptor descriptor)
    cpdef Descriptor prepare_src(self, Endpoint endpoint, Convertor convertor, long long offset, int order, int reserve, long long size, int flags)
    cpdef int send(self, Endpoint endpoint, Descriptor descriptor, int tag) except? -99
    cdef int _send(self, SmEndpoint endpoint, SmDescriptor descriptor, int tag) except? -99
    @cython.locals(there=SmEndpoint, writer=RingWriter, begin="long long", total="long long", at="long long")
    cpdef int sendi(self, Endpoint endpoint, Convertor convertor, bytes header, long long payload_size, int order, int flags, int tag) except? -99
    @cython.locals(at="long long", size="long long", start="long long")
    cdef bint _push(self, SmEndpoint endpoint, SmDescriptor descriptor) except -1
    cdef _ring(self, SmEndpoint endpoint)
    @cython.locals(events=int, inbox=Inbox)
    cpdef int poll(self) except -1
    @cython.locals(reader=RingReader, count=int, start="long long", block="long long", handler=ReceiveCallback)
    cdef int _drain(self, Inbox inbox) except -1
    cdef int _reap(self) except -1
    cpdef bint _is_read(self, SmDescriptor descriptor) except -1
    cdef int _flush(self) except -1
    @cython.locals(inbox=Inbox)
    cpdef bint arm(self) except -1
    cdef bint _room_for_waiting(self) except -1
    cpdef disarm(self)
    cpdef finalize(self)
    cdef _end(self, SmEndpoint endpoint, SmDescriptor descriptor, int status)
    cpdef bint _flushed(self) except -1
