# `import mpi4py.rc` gives the object `mpi4py.rc`
initialize: bool
threads: bool
thread_level: str
finalize: bool | None
fast_reduce: bool
recv_mprobe: bool
irecv_bufsz: int
errors: str
