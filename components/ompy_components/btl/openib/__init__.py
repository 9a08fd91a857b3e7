"""BTL openib: reliable-connected queue pairs of an emulated RDMA adapter."""
