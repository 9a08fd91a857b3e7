cimport cython

from ompy cimport raw
from ompy.data.convertor cimport Convertor
from ompy.frameworks.btl cimport BtlModule, CompletionCallback, Descriptor, Endpoint, ReceiveCallback
from ompy.frameworks.nic.fabric cimport Completion, CompletionQueue, FabricEndpoint
from ompy.frameworks.transfers cimport unsuitable
from ompy_components.btl.ofi.endpoint cimport OfiEndpoint
from ompy_components.btl.ofi.failover cimport Failover
from ompy_components.btl.ofi.receiving cimport ReceiveEngine
from ompy_components.btl.ofi.records cimport OfiFragment, Operation, ReceiveBuffer, fragment_in, operation_on
from ompy_components.btl.ofi.sending cimport SendEngine
from ompy_components.btl.ofi.transfers cimport TransferEngine
from ompy_components.btl.ofi.window cimport Window

# the module's constants, in C
cdef long long ATOMIC_FOPS
cdef long long ATOMIC_OPS
cdef long long BTL_OWNERSHIP
cdef long long COMPLETED
cdef long long DEPARTURES
cdef long long FAILOVER_SUPPORT
cdef long long GET
cdef long long HEADER_SIZE
cdef long long LOOK_FIRST
cdef long long LOOK_MOST
cdef long long NOT_AVAILABLE
cdef long long PUT
cdef long long REMOTE_READ
cdef long long REMOTE_WRITE
cdef long long SEND_ALWAYS_CALLBACK

cdef class OfiModule(BtlModule):
    cdef public object domain
    cdef bint _finalized
    cdef list _handlers
    cdef long long _look
    cdef bint _missing
    cdef object _news
    cdef list _queues
    cdef int _read_max
    cdef bint _reading
    cdef long long _rounds
    cdef bint _several
    cdef bint _starved
    cdef object _timer
    cdef object _ways
    cdef public dict atomics
    cdef public object contexts
    cdef public object dead
    cdef public dict endpoints
    cdef public Failover failover
    cdef public FabricEndpoint first
    cdef public long long index
    cdef public object info
    cdef public object interface
    cdef public object keeper
    cdef public object memory
    cdef public object mode
    cdef public object nic
    cdef public ReceiveEngine receiving
    cdef public SendEngine sending
    cdef public unsigned long long size
    cdef public TransferEngine transfers
    cdef public bint two_sided
    cdef public object words
    cpdef Endpoint reach(self, proc)
    cpdef bytes path(self, Endpoint endpoint)
    cpdef bint begin_failover(self) except -1
    cpdef dict counters(self)
    cpdef bint has_room(self, Endpoint endpoint) except -1
    cpdef Descriptor alloc(self, Endpoint endpoint, int order, long long size, int flags)
    cpdef free(self, Descriptor descriptor)
    cpdef int send(self, Endpoint endpoint, Descriptor descriptor, int tag) except? -99
    @cython.locals(fragment=OfiFragment, size="long long")
    cpdef int sendi(self, Endpoint endpoint, Convertor convertor, bytes header, long long payload_size, int order, int flags, int tag) except? -99
    cpdef register_mem(self, Endpoint endpoint, memory, int flags)
    cpdef deregister_mem(self, handle)
    @cython.locals(one=Operation)
    cpdef int put(self, Endpoint endpoint, local, unsigned long long remote_address, local_handle, remote_handle, int flags, int order, CompletionCallback callback, context) except? -99
    @cython.locals(one=Operation)
    cpdef int get(self, Endpoint endpoint, local, unsigned long long remote_address, local_handle, remote_handle, int flags, int order, CompletionCallback callback, context) except? -99
    cpdef int atomic(self, Endpoint endpoint, operation, CompletionCallback callback, context) except? -99
    cpdef flush(self, Endpoint endpoint)
    cdef FabricEndpoint context_for_next(self)
    @cython.locals(events=int)
    cpdef int poll(self) except -1
    @cython.locals(count=int, queue=CompletionQueue, found=list, completion=Completion)
    cpdef int read_completions(self) except -1
    cdef _handle(self, Completion completion)
    @cython.locals(sending=SendEngine)
    cdef _tend(self, bint idle)
    @cython.locals(sending=SendEngine, endpoint=OfiEndpoint, window=Window, pressing=bint)
    cdef _acknowledge(self, bint soon)
    cdef int _look_after(self) except -1
    @cython.locals(soon=bint)
    cpdef bint arm(self) except -1
    cpdef waits_for_room(self)
    cpdef watch_over(self)
    cpdef finalize(self)
    @cython.locals(handler=ReceiveCallback)
    cpdef dispatch(self, Endpoint endpoint, int tag, fragment)
