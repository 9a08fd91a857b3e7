cpdef choose(int mode, long long size, long long eager_payload_max, bint can_send_immediate, bint send_inplace)
cpdef long long first_payload(long long size, long long eager_payload_max, long long rndv_eager_limit) except -1
