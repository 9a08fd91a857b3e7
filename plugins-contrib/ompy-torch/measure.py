"""How long collectives take, beside gloo in the same processes, in turns.

    ompy-run -n 2 python measure.py

Prints for each call and size the least time of each back end over the rounds, and the median of
the rounds' ratios: below 1 this back end is the faster one.
"""

import statistics
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

ROUNDS = 9  # arbitrary: the median of eight, without the first
SIZES = (1, 1_000, 30_000, 1_000_000)  # float32 elements of a rank
BUDGET = 1_000_000  # arbitrary: elements that a round moves, about

dist.init_process_group("ompy")
RANK, RANKS = dist.get_rank(), dist.get_world_size()
GLOO = dist.new_group(backend="gloo")
torch.set_num_threads(1)


def calls(size: int) -> dict[str, Callable[[object], object]]:
    """What is measured with tensors of a size, by name; each is told the group."""
    one, whole = torch.ones(size), torch.ones(size * RANKS)
    half = torch.ones(size, dtype=torch.bfloat16)
    return {
        "all_reduce": lambda group: dist.all_reduce(one, dist.ReduceOp.MAX, group),
        "all_reduce, async_op": lambda group: dist.all_reduce(
            one, dist.ReduceOp.MAX, group, async_op=True
        ).wait(),
        "all_reduce, bfloat16": lambda group: dist.all_reduce(half, dist.ReduceOp.MAX, group),
        "broadcast": lambda group: dist.broadcast(one, 0, group),
        "all_gather_into_tensor": lambda group: dist.all_gather_into_tensor(whole, one, group),
        "reduce_scatter_tensor": lambda group: dist.reduce_scatter_tensor(
            one, whole, dist.ReduceOp.MAX, group
        ),
        "all_to_all_single": lambda group: dist.all_to_all_single(
            torch.empty_like(whole), whole, group=group
        ),
        "send, recv": exchange(one),
    }


def exchange(tensor: torch.Tensor) -> Callable[[object], object]:
    """A tensor that goes from rank 0 to rank 1 and back."""

    def there_and_back(group: object) -> None:
        if RANK == 0:
            dist.send(tensor, 1, group)
            dist.recv(tensor, 1, group)
        elif RANK == 1:
            dist.recv(tensor, 0, group)
            dist.send(tensor, 0, group)

    return there_and_back


def took(call: Callable[[object], object], group: object, times: int) -> float:
    """Microseconds for one call."""
    dist.barrier()
    began = time.perf_counter()
    for _ in range(times):
        call(group)
    return (time.perf_counter() - began) / times * 1e6


if RANK == 0:
    print(f"{'call':<24}{'elements':>9}{'ompy us':>11}{'gloo us':>11}{'ratio':>8}")
for size in SIZES:
    times = max(2, min(50, BUDGET // size))
    for name, call in calls(size).items():
        rounds = [(took(call, None, times), took(call, GLOO, times)) for _ in range(ROUNDS)][1:]
        ours, theirs = (min(column) for column in zip(*rounds, strict=True))
        ratio = statistics.median(our / their for our, their in rounds)
        if RANK == 0:
            print(f"{name:<24}{size:>9}{ours:>11.1f}{theirs:>11.1f}{ratio:>8.2f}", flush=True)
dist.destroy_process_group()
