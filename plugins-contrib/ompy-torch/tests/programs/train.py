"""Train a small model with DistributedDataParallel, and say what came out of it.

ompy-run -n 4 python train.py ompy 60
"""

import hashlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BACKEND, STEPS = sys.argv[1], int(sys.argv[2])
BATCH = 16  # samples of a rank

dist.init_process_group(BACKEND)
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(7)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(20, 256), nn.Tanh(), nn.BatchNorm1d(256), nn.Linear(256, 1))
trained = DistributedDataParallel(model, bucket_cap_mb=0.02)
optimizer = torch.optim.Adam(trained.parameters(), lr=0.01)
truth = torch.randn(20, 1)
samples = torch.Generator().manual_seed(rank)  # each rank has its own
for _step in range(STEPS):
    inputs = torch.randn(BATCH, 20, generator=samples)
    loss = nn.functional.mse_loss(trained(inputs), torch.sin(inputs @ truth))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
total = loss.detach().clone()
dist.all_reduce(total)
weights = b"".join(
    bytes(value.detach().view(torch.uint8).flatten().tolist()) for value in model.parameters()
)
if rank == 0:
    print(f"loss {total.item() / size:.6f} weights {hashlib.sha256(weights).hexdigest()[:16]}")
dist.destroy_process_group()
