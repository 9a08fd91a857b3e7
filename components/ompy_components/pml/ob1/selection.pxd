
# the module's constants, in C
cdef long long GET
cdef long long PUT
cdef long long BUFFERED
cdef long long SYNCHRONOUS
cpdef choose(int mode, long long size, long long eager_payload_max, bint can_send_immediate, bint send_inplace)
cpdef choose_bare(int mode, long long size, long long eager_payload_max)
cpdef long long first_payload(long long size, long long eager_payload_max, long long rndv_eager_limit) except -1
cpdef choose_large(int mode, bint contiguous, int direct_flags)
cpdef bint suits_direct(int flags, long long min_rdma_pipeline_size, bint leave_pinned, long long size) except -1
