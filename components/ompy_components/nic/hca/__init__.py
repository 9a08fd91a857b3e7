"""NIC hca: an emulated RDMA adapter with verbs semantics, over datagram sockets."""
