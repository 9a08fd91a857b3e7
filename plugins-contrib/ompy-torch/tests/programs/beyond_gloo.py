"""What gloo has not, or not so: each is checked against what must come out."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed import ReduceOp

dist.init_process_group("ompy")
rank, size = dist.get_rank(), dist.get_world_size()
everybody = range(size)
world = dist.group.WORLD


def same(found: torch.Tensor, wanted: object) -> None:
    assert found.tolist() == wanted, (rank, found, wanted)


def average_and_truth() -> None:
    tensor = torch.tensor([rank, 2.0 * rank])
    dist.all_reduce(tensor, ReduceOp.AVG)
    same(tensor, [(size - 1) / 2, float(size - 1)])
    mine = [rank == 0, True, False]
    for op, wanted in (
        (ReduceOp.SUM, [True, True, False]),
        (ReduceOp.PRODUCT, [size == 1, True, False]),
        (ReduceOp.MIN, [size == 1, True, False]),
        (ReduceOp.MAX, [True, True, False]),
        (ReduceOp.BAND, [size == 1, True, False]),
        (ReduceOp.BXOR, [True, size % 2 == 1, False]),
    ):
        truth = torch.tensor(mine)
        dist.all_reduce(truth, op)
        same(truth, wanted)


def small_floats() -> None:
    """Of many small numbers a sum that is rounded each time would lose some."""
    tensor = torch.full((4,), 1 / 256, dtype=torch.bfloat16)
    tensor[0] = 1.0 if rank == 0 else 1 / 256
    dist.all_reduce(tensor)
    wanted = torch.tensor(1 + (size - 1) / 256).to(torch.bfloat16)
    assert tensor[0] == wanted, (tensor, wanted)
    same(tensor[1:].float(), [size / 256] * 3)


def complex_numbers() -> None:
    tensor = torch.tensor([complex(rank, 1)])
    dist.all_reduce(tensor)
    same(tensor, [complex(sum(everybody), size)])


def uneven() -> None:
    mine = torch.full((rank + 1,), rank)
    room = [torch.empty(each + 1, dtype=torch.int64) for each in everybody]
    dist.all_gather(room, mine)
    for each in everybody:
        same(room[each], [each] * (each + 1))
    parts = [torch.full((each + 1,), rank) for each in everybody]
    given = [torch.empty(rank + 1, dtype=torch.int64) for _ in everybody]
    dist.all_to_all(given, parts)
    for each in everybody:
        same(given[each], [each] * (rank + 1))
    total = torch.empty(rank + 1, dtype=torch.int64)
    dist.reduce_scatter(total, parts)
    same(total, [sum(everybody)] * (rank + 1))


def in_place() -> None:
    whole = torch.full((size, 2), -1)
    whole[rank] = rank
    dist.all_gather_into_tensor(whole, whole[rank])
    same(whole, [[each, each] for each in everybody])
    numbers = torch.arange(size * 2)
    dist.reduce_scatter_tensor(numbers[2 * rank : 2 * rank + 2], numbers)
    same(numbers[2 * rank : 2 * rank + 2], [2 * rank * size, (2 * rank + 1) * size])
    table = torch.arange(size) + rank * size
    dist.all_to_all_single(table, table)
    same(table, [each * size + rank for each in everybody])


def messages() -> None:
    right, left = (rank + 1) % size, (rank - 1) % size
    if size > 1:
        room = torch.empty(3, 2)[:, 0]  # with gaps
        received = dist.irecv(room, left, tag=5)
        sent = [dist.isend(torch.full((3,), float(rank)), right, tag=tag) for tag in (4, 5)]
        early = torch.empty(3)
        dist.recv(early, left, tag=4)
        received.wait()
        for work in sent:
            work.wait()
            assert work.is_completed()
        same(room, [float(left)] * 3)
        same(early, [float(left)] * 3)
        future = dist.irecv(early, left).get_future()
        dist.send(torch.ones(3), right)
        assert future.wait()[0] is not None
        same(early, [1.0] * 3)
    sources = set()
    if rank == 0:
        for _ in range(size - 1):
            number = torch.empty(1, dtype=torch.int64)
            source = dist.recv(number)
            same(number, [source])
            sources.add(source)
        assert sources == set(everybody) - {0}
    else:
        dist.send(torch.tensor([rank]), 0)
    operations = [
        dist.P2POp(dist.isend, torch.tensor([rank]), right, tag=9),
        dist.P2POp(dist.irecv, number := torch.empty(1, dtype=torch.int64), left, tag=9),
    ]
    if size > 1:
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        same(number, [left])


def groups() -> None:
    parts = [[each for each in everybody if each % 2 == odd] for odd in (0, 1)]
    own = [dist.new_group(part) for part in parts if part][rank % 2]
    tensor = torch.tensor([rank])
    works = [dist.all_reduce(tensor, group=own, async_op=True)]
    other = torch.tensor([1])
    works.append(dist.all_reduce(other, async_op=True))
    for work in reversed(works):
        work.wait()
    same(tensor, [sum(each for each in everybody if each % 2 == rank % 2)])
    same(other, [size])
    backwards = dist.new_group(list(reversed(everybody)), sort_ranks=False) if size > 1 else world
    first = torch.tensor([rank])
    dist.broadcast(first, group=backwards, group_src=0)
    same(first, [size - 1])
    dist.destroy_process_group(own)


def objects() -> None:
    found: list[object] = [None] * size
    dist.all_gather_object(found, {"rank": rank})
    assert found == [{"rank": each} for each in everybody]
    said = [("said", rank)]
    dist.broadcast_object_list(said, src=size - 1)
    assert said == [("said", size - 1)]
    given: list[object] = [None]
    dist.scatter_object_list(given, [str(each) for each in everybody] if rank == 0 else None)
    assert given == [str(rank)]
    gathered: list[object] | None = [None] * size if rank == 0 else None
    dist.gather_object(rank, gathered)
    assert rank or gathered == list(everybody)


def together() -> None:
    tensors = [torch.full((each,), float(rank)) for each in (1, 2, 3)]
    with dist._coalescing_manager() as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    del manager
    for tensor in tensors:
        same(tensor, [float(sum(everybody))] * len(tensor))
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
        dist.broadcast(first := torch.tensor([rank]), 0)
        dist.broadcast(last := torch.tensor([rank]), size - 1)
    manager.wait()
    same(first, [0])
    same(last, [size - 1])
    whole = [torch.empty(size, dtype=torch.int64) for _ in range(2)]
    with dist._coalescing_manager():
        for each in whole:
            dist.all_gather_into_tensor(each, torch.tensor([rank]))
    for each in whole:
        same(each, list(everybody))


def sparse() -> None:
    tensor = torch.sparse_coo_tensor([[rank, size]], [[1.0, 2.0], [3.0, 4.0]], (size + 1, 2))
    dist.all_reduce(tensor)
    wanted = [[1.0, 2.0]] * size + [[3.0 * size, 4.0 * size]]
    same(tensor.to_dense(), wanted)
    empty = torch.sparse_coo_tensor(torch.empty(1, 0), torch.empty(0, 2), (3, 2))
    dist.all_reduce(empty)
    same(empty.to_dense(), [[0.0, 0.0]] * 3)


def traced() -> None:
    same(functional.all_reduce(torch.ones(2), "sum", world) + 0, [size] * 2)
    same(functional.all_gather_single(torch.tensor([rank]), 0, world) + 0, list(everybody))
    numbers = torch.arange(size)
    same(functional.reduce_scatter_single(numbers, "sum", 0, world) + 0, [rank * size])
    same(functional.all_to_all_single(numbers, None, None, world) + 0, [rank] * size)
    same(functional.broadcast(torch.tensor([rank]), 0, world) + 0, [0])


for check in (
    average_and_truth,
    small_floats,
    complex_numbers,
    uneven,
    in_place,
    messages,
    groups,
    objects,
    together,
    sparse,
    traced,
):
    check()
    dist.barrier()
store = dist.distributed_c10d._get_default_store()
if rank == 0:
    store.set("word", "kept")
assert store.get("word") == b"kept"
dist.barrier()
dist.destroy_process_group()
dist.init_process_group("ompy")  # again
dist.all_reduce(again := torch.ones(1))
same(again, [size])
dist.destroy_process_group()
if rank == 0:
    print("as they must be")
