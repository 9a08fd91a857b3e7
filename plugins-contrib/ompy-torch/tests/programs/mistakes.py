"""A mistake, chosen by its name; `local` are all that are found before anything is sent."""

import datetime as dt
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

mistake = sys.argv[1]
dist.init_process_group("ompy", timeout=dt.timedelta(seconds=2) if mistake == "late" else None)
rank, size = dist.get_rank(), dist.get_world_size()

LOCAL = {
    "device": lambda: dist.all_reduce(torch.empty(3, device="meta")),
    "operation": lambda: dist.all_reduce(torch.ones(3), ReduceOp.BAND),
    "numbers": lambda: dist.all_reduce(torch.ones(3, dtype=torch.int32), ReduceOp.AVG),
    "parts": lambda: dist.all_gather([torch.ones(3)] * (size + 1), torch.ones(3)),
    "whole": lambda: dist.all_gather_into_tensor(torch.ones(5), torch.ones(3)),
    "splits": lambda: dist.all_to_all_single(torch.ones(4), torch.ones(4), [1, 1], [2, 2]),
    "options": lambda: dist.new_group(pg_options=object()),
}

if mistake == "local":
    for name, call in LOCAL.items():
        try:
            call()
        except ValueError as problem:
            if rank == 0:
                print(f"{name}: {problem}")
elif mistake == "shapes":
    dist.all_reduce(torch.ones(3 + rank))
elif mistake == "truncated":
    if rank == 0:
        dist.send(torch.ones(3), 1)
    else:
        dist.recv(torch.ones(2), 0)
elif mistake == "late":
    if rank == 0:
        dist.all_reduce(torch.ones(1))
    dist.distributed_c10d._get_default_store().wait(["never"], dt.timedelta(minutes=5))
elif mistake == "death":
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        while True:
            dist.all_reduce(torch.ones(100_000))
    except dist.DistBackendError as problem:  # with mpi_ft_enable alone: else the job is over
        print(str(problem).partition(",")[0].partition(" at ")[0])
