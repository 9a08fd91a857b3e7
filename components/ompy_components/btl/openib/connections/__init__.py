"""The life of a connection: HELLOs, what breaks and is drained, and a new queue pair for RDMA."""
