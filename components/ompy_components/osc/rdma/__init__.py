"""osc rdma: windows over the puts and gets of BTLs."""
