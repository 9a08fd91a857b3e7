"""What several BTLs share: parameters, registered memory, put and get without RDMA, seals."""
