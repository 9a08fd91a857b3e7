cpdef next_send_state(state, event, story)
cpdef next_receive_state(state, event, story)
cpdef next_rdma_state(state, event, story)
