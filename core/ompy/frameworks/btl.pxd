from ompy.engine.base cimport Poller
from ompy.data.convertor cimport Convertor
from ompy.frameworks.proc cimport Proc

cdef class ReceiveCallback:
    cpdef received(self, BtlModule module, Endpoint endpoint, int tag, data)

cdef class CompletionCallback:
    cpdef completed(self, BtlModule module, Endpoint endpoint, Descriptor descriptor, int status)

cdef class ActiveMessages:
    cdef public list handlers
    cpdef register(self, int tag, ReceiveCallback callback)

cdef class Endpoint:
    cdef public BtlModule module
    cdef public Proc proc
    cpdef str describe(self)
    cpdef tuple ends(self)

cdef class Descriptor:
    cdef public object segment
    cdef public object payload
    cdef public long long payload_size
    cdef public int flags
    cdef public int order
    cdef public CompletionCallback callback
    cdef public object context
    cdef public int tag
    cpdef prepare(self, segment, int flags, int order)

cdef class ErrorCallback:
    cpdef failed(self, BtlModule module, int flags, proc, reason)
    cpdef returned(self, BtlModule module, proc, int tag, fragment)
    cpdef healed(self, BtlModule module, proc)

cdef class BtlModule(Poller):
    cdef public object name
    cdef public object context
    cdef public long long eager_limit
    cdef public long long rndv_eager_limit
    cdef public long long max_send_size
    cdef public long long rdma_pipeline_send_length
    cdef public long long rdma_pipeline_frag_size
    cdef public long long min_rdma_pipeline_size
    cdef public long exclusivity
    cdef public long latency
    cdef public long bandwidth
    cdef public int flags
    cdef public long long atomic_flags
    cdef public long long get_limit
    cdef public long long put_limit
    cdef public long get_alignment
    cdef public long put_alignment
    cdef public int registration_handle_size
    cdef public long long local_registration_threshold
    cdef public long long split_least
    cdef public ErrorCallback error_callback
    cpdef list add_procs(self, procs)
    cpdef Endpoint reach(self, proc)
    cpdef del_procs(self, endpoints)
    cpdef Descriptor alloc(self, Endpoint endpoint, int order, long long size, int flags)
    cpdef bint has_room(self, Endpoint endpoint) except -1
    cpdef free(self, Descriptor descriptor)
    cpdef Descriptor prepare_src(self, Endpoint endpoint, Convertor convertor, long long offset, int order, int reserve, long long size, int flags)
    cpdef int send(self, Endpoint endpoint, Descriptor descriptor, int tag) except? -99
    cpdef dict counters(self)
    cpdef int finish(self, Endpoint endpoint, Descriptor descriptor) except? -99
    cpdef dispatch(self, Endpoint endpoint, int tag, fragment)
    cpdef int sendi(self, Endpoint endpoint, Convertor convertor, bytes header, long long payload_size, int order, int flags, int tag) except? -99
    cpdef int put(self, Endpoint endpoint, local, unsigned long long remote_address, local_handle, remote_handle, int flags, int order, CompletionCallback callback, context) except? -99
    cpdef int get(self, Endpoint endpoint, local, unsigned long long remote_address, local_handle, remote_handle, int flags, int order, CompletionCallback callback, context) except? -99
    cpdef int atomic(self, Endpoint endpoint, operation, CompletionCallback callback, context) except? -99
    cpdef bytes path(self, Endpoint endpoint)
    cpdef register_mem(self, Endpoint endpoint, memory, int flags)
    cpdef deregister_mem(self, handle)
    cpdef flush(self, Endpoint endpoint)
    cpdef register_error(self, ErrorCallback callback)
    cpdef bint begin_failover(self) except -1
    cpdef finalize(self)
