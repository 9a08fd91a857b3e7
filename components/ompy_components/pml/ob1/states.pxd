cimport cython

# the module's constants, in C
cdef long long ERR_INTERN

@cython.locals(table=dict)
cpdef next_send_state(state, event, whose)
@cython.locals(table=dict)
cpdef next_receive_state(state, event, whose)
@cython.locals(table=dict)
cpdef next_rdma_state(state, event, whose)
