"""Every collective call on both back ends, with the same tensors: the results must be the same."""

import random
import sys
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import ReduceOp

SEED = int(sys.argv[1])
ROUNDS = int(sys.argv[2])
WHOLE = [torch.uint8, torch.int8, torch.int32, torch.int64]
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
ORDERED = [ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX]
BITS = [ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR]
LENGTHS = [0, 1, 3, 17, 1000, 70_001]

dist.init_process_group("ompy")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
GLOO = dist.new_group(backend="gloo")
alike = random.Random(SEED)  # the same choices at all ranks
own = torch.Generator().manual_seed(SEED * 1000 + RANK)


def fresh(dtype: torch.dtype, *shape: int) -> Tensor:
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=own).bool()
    if dtype.is_floating_point:
        return torch.randn(shape, generator=own, dtype=torch.float64).to(dtype)
    return torch.randint(0, 100, shape, generator=own).to(dtype)


def strided(tensor: Tensor) -> Tensor:
    """The same numbers with gaps between them."""
    wide = torch.empty((*tensor.shape, 2), dtype=tensor.dtype)
    wide[..., 0] = tensor
    return wide[..., 0]


def compare(name: str, call: Callable[..., object], made: list[Tensor]) -> None:
    """Make a call on copies of the tensors over each back end."""
    results = []
    gaps = alike.random() < 0.2
    for group in (None, GLOO):
        tensors = [tensor.clone() for tensor in made]
        if gaps and group is None:  # gloo refuses them in some calls
            tensors = [strided(tensor) for tensor in tensors]
        waits = alike.random() < 0.5 and name != "objects"
        work = call(tensors, group=group, **({"async_op": True} if waits else {}))
        if waits:
            assert isinstance(work, dist.Work)
            work.wait()
            assert group is GLOO or work.is_completed()
        results.append(tensors)
    for ours, theirs in zip(*results, strict=True):
        loose = ours.dtype in (torch.float16, torch.bfloat16)
        torch.testing.assert_close(
            ours,
            theirs,
            rtol=0.05 if loose else 1e-5,
            atol=0.05 if loose else 1e-5,
            equal_nan=True,
            msg=lambda said: f"{name}, seed {SEED}: {said}",
        )


def reducing() -> None:
    dtype = alike.choice([*WHOLE, *FLOATS])
    ops = ORDERED + ([] if dtype.is_floating_point else BITS)
    op = alike.choice(ops)
    length = alike.choice(LENGTHS)
    root = alike.randrange(SIZE)
    compare(
        f"all_reduce {op} {dtype} {length}",
        lambda t, **k: dist.all_reduce(t[0], op, **k),
        [fresh(dtype, length)],
    )

    def reduce(tensors: list[Tensor], **keywords: object) -> object:
        work = dist.reduce(tensors[0], root, op, **keywords)
        if work is not None:
            work.wait()
        if root != RANK:  # what is there then is undefined
            tensors[0].zero_()
        return work

    compare(f"reduce {op} {dtype} {length}", reduce, [fresh(dtype, length)])
    parts = [fresh(dtype, length, 2) for _ in range(SIZE)]
    compare(
        f"reduce_scatter {op} {dtype} {length}",
        lambda t, **k: dist.reduce_scatter(t[0], t[1:], op, **k),
        [fresh(dtype, length, 2), *parts],
    )
    compare(
        f"reduce_scatter_tensor {op} {dtype} {length}",
        lambda t, **k: dist.reduce_scatter_tensor(t[0], t[1], op, **k),
        [fresh(dtype, length), fresh(dtype, SIZE * length)],
    )


def moving() -> None:
    dtype = alike.choice([*WHOLE, *FLOATS, torch.bool])
    length = alike.choice(LENGTHS)
    root = alike.randrange(SIZE)
    label = f"{dtype} {length}"
    compare(
        f"broadcast {label}",
        lambda t, **k: dist.broadcast(t[0], root, **k),
        [fresh(dtype, length, 3)],
    )
    row = [fresh(dtype, length) for _ in range(SIZE + 1)]
    compare(f"all_gather {label}", lambda t, **k: dist.all_gather(t[1:], t[0], **k), row)
    compare(
        f"all_gather_into_tensor {label}",
        lambda t, **k: dist.all_gather_into_tensor(t[0], t[1], **k),
        [fresh(dtype, SIZE, length), fresh(dtype, 1, length)],
    )
    compare(
        f"gather {label}",
        lambda t, **k: dist.gather(t[0], t[1:] if root == RANK else None, root, **k),
        row if root == RANK else row[:1],
    )
    compare(
        f"scatter {label}",
        lambda t, **k: dist.scatter(t[0], t[1:] if root == RANK else None, root, **k),
        row if root == RANK else row[:1],
    )


def exchanging() -> None:
    dtype = alike.choice([*WHOLE, *FLOATS, torch.bool])
    table = [[alike.choice([0, 1, 5, 300]) for _ in range(SIZE)] for _ in range(SIZE)]
    sent, received = table[RANK], [row[RANK] for row in table]
    compare(
        f"all_to_all_single {dtype} {table}",
        lambda t, **k: dist.all_to_all_single(t[0], t[1], received, sent, **k),
        [fresh(dtype, sum(received), 2), fresh(dtype, sum(sent), 2)],
    )
    compare(
        f"all_to_all_single {dtype}, equal",
        lambda t, **k: dist.all_to_all_single(t[0], t[1], **k),
        [fresh(dtype, SIZE * 4), fresh(dtype, SIZE * 4)],
    )
    count = alike.choice([1, 5, 300])  # gloo wants them equal, and not empty
    compare(
        f"all_to_all {dtype} {count}",
        lambda t, **k: dist.all_to_all(t[:SIZE], t[SIZE:], **k),
        [fresh(dtype, count) for _ in range(2 * SIZE)],
    )


for _ in range(ROUNDS):
    reducing()
    moving()
    exchanging()
dist.barrier()
dist.destroy_process_group()
if RANK == 0:
    print("alike")
