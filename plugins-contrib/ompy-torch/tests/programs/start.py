"""Begin by what `init_process_group` is given, add up the ranks, and say where they are from."""

import sys

import torch
import torch.distributed as dist

dist.init_process_group("ompy", **({"init_method": sys.argv[1]} if sys.argv[1] else {}))
tensor = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(tensor)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {tensor.item()} by {dist.get_backend()}")
dist.destroy_process_group()
