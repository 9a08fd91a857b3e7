"""A job for `test_safety`: says where its ranks listen, then passes messages until told to stop."""

import json
import select
import sys

from ompy import MPI
from ompy.mpi.processes.life import current

comm = MPI.COMM_WORLD
process = current().process
tcp = next(module for module in process.context.btls if module.name == "tcp")
addresses = comm.gather(tuple(tcp.listener.address))
if comm.rank == 0:
    print(json.dumps({"addresses": addresses, "job_id": process.context.job_id.hex()}), flush=True)

rounds, stop = 0, False
while not stop:
    for size in (1, 300, 5000, 200_000):
        data = bytes([rounds % 256]) * size
        got = comm.sendrecv(data, (comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)
        assert got == data
    rounds += 1
    if comm.rank == 0:
        stop = bool(select.select([sys.stdin], [], [], 0)[0])
    stop = comm.bcast(stop)
most = comm.reduce(len(tcp.accepting.half_open), op=MPI.MAX)
if comm.rank == 0:
    print(json.dumps({"rounds": rounds, "half_open": most}), flush=True)
