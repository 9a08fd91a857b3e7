"""What each collective call does with its tensors, once it is this call's turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from ompy import MPI
from torch import Tensor

from ompy_torch.reductions import Reduction
from ompy_torch.sparse import allreduce_sparse, check_sparse
from ompy_torch.tensors import (
    Room,
    blocks_of,
    check_alike,
    check_tensors,
    joined,
    message_of,
    overlap,
    spread,
)

Operation = Callable[[], None]


# --- whether the tensors are right


def check_list(call: str, tensors: Sequence[Tensor], one: Tensor, ranks: int) -> None:
    """See that there is a tensor for each rank, of the dtype of `one`.

    Raises:
        ValueError: there is not.
    """
    check_tensors(call, [one, *tensors])
    if len(tensors) != ranks:
        raise ValueError(f"{call}: {len(tensors)} tensors for {ranks} ranks")
    check_alike(call, tensors, one.dtype)


def check_singles(call: str, whole: Sequence[Tensor], parts: Sequence[Tensor], ranks: int) -> None:
    """See that each whole tensor has as many elements as `ranks` of its part.

    Raises:
        ValueError: it has not.
    """
    check_tensors(call, [*whole, *parts])
    if len(whole) != len(parts):
        raise ValueError(f"{call}: {len(whole)} tensors for {len(parts)}")
    for tensor, part in zip(whole, parts, strict=True):
        check_alike(call, [tensor], part.dtype, part.numel() * ranks)


def check_exchange(outputs: Sequence[Tensor], inputs: Sequence[Tensor], ranks: int) -> None:
    """See that there is a tensor for each rank and of each.

    Raises:
        ValueError: there is not.
    """
    check_list("all_to_all", inputs, inputs[0] if inputs else torch.empty(0), ranks)
    check_list("all_to_all", outputs, inputs[0], ranks)


def counts_of(call: str, tensor: Tensor, splits: list[int] | None, ranks: int) -> list[int]:
    """How many elements of a tensor belong to each rank.

    Args:
        call: its name, for errors.
        tensor: split along its first dimension.
        splits: rows of each; none for equal parts.
        ranks: how many.

    Raises:
        ValueError: the tensor is not of that many rows.
    """
    rows = tensor.shape[0] if tensor.dim() else 1
    if not splits:
        if rows % ranks:
            raise ValueError(f"{call}: {rows} rows are not for {ranks} ranks in equal parts")
        splits = [rows // ranks] * ranks
    if len(splits) != ranks or sum(splits) != rows or min(splits) < 0:
        raise ValueError(f"{call}: parts {splits} of {rows} rows for {ranks} ranks")
    row = tensor.numel() // rows if rows else 0
    return [split * row for split in splits]


# --- one tensor for all


def broadcast(comm: Any, tensors: Sequence[Tensor], root: int) -> None:
    """The root's tensors go to all."""
    for tensor in tensors:
        if comm.rank == root:
            comm.Bcast(message_of(joined([tensor])), root)
        else:
            room = Room(tensor)
            comm.Bcast(message_of(room.flat), root)
            room.settle()


def prepared_allreduce(comm: Any, tensors: list[Tensor], op: Any) -> Operation:
    """An allreduce that is known to be possible.

    Raises:
        ValueError: there is no such operation on such numbers.
    """
    if any(tensor.is_sparse for tensor in tensors):
        check_sparse(tensors, op)
        return lambda: allreduce_sparse(comm, tensors)
    reductions = [Reduction("all_reduce", op, tensor.dtype) for tensor in tensors]
    if len(tensors) > 1 and len({tensor.dtype for tensor in tensors}) == 1:
        return lambda: _allreduce_together(comm, tensors, reductions[0])

    def operation() -> None:
        for reduction, tensor in zip(reductions, tensors, strict=True):
            _allreduce(comm, tensor, reduction)

    return operation


def _allreduce(comm: Any, tensor: Tensor, reduction: Reduction) -> None:
    elements = reduction.prepared(tensor)
    comm.Allreduce(MPI.IN_PLACE, message_of(elements), reduction.op)
    reduction.settle(elements, tensor, comm.size)


def _allreduce_together(comm: Any, tensors: Sequence[Tensor], reduction: Reduction) -> None:
    row = joined(tensors)
    _allreduce(comm, row, reduction)
    spread(row, tensors)


def prepared_reduce(comm: Any, tensors: list[Tensor], op: Any, root: int) -> Operation:
    """A reduce that is known to be possible.

    Raises:
        ValueError: there is no such operation on such numbers.
    """
    reductions = [Reduction("reduce", op, tensor.dtype) for tensor in tensors]

    def operation() -> None:
        for reduction, tensor in zip(reductions, tensors, strict=True):
            elements = reduction.prepared(tensor)
            if comm.rank == root:
                comm.Reduce(MPI.IN_PLACE, message_of(elements), reduction.op, root)
                reduction.settle(elements, tensor, comm.size)
            else:
                comm.Reduce(message_of(elements), None, reduction.op, root)

    return operation


# --- a tensor of each


def allgather(comm: Any, outputs: list[list[Tensor]], inputs: Sequence[Tensor]) -> None:
    """Each member's tensors go to all; they need not be of one size."""
    for given, taken in zip(outputs, inputs, strict=True):
        counts = [tensor.numel() for tensor in given]
        row = torch.empty(sum(counts), dtype=taken.dtype)
        comm.Allgatherv(message_of(joined([taken])), blocks_of(row, counts))
        spread(row, given)


def allgather_single(comm: Any, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
    """The same, into one tensor. What is sent may be its own part of that."""
    for output, taken in zip(outputs, inputs, strict=True):
        sent = joined([taken])
        room = Room(output)
        if overlap(sent, room.flat):
            own = room.flat.data_ptr() + comm.rank * sent.nbytes == sent.data_ptr()
            sent = sent if own else sent.clone()
            message = MPI.IN_PLACE if own else message_of(sent)
        else:
            message = message_of(sent)
        comm.Allgather(message, message_of(room.flat))
        room.settle()


def gather(comm: Any, outputs: Sequence[Tensor], taken: Tensor, root: int) -> None:
    """Each member's tensor goes to the root."""
    sent = message_of(joined([taken]))
    if comm.rank != root:
        comm.Gatherv(sent, None, root)
        return
    counts = [tensor.numel() for tensor in outputs]
    row = torch.empty(sum(counts), dtype=taken.dtype)
    comm.Gatherv(sent, blocks_of(row, counts), root)
    spread(row, outputs)


def scatter(comm: Any, output: Tensor, inputs: Sequence[Tensor], root: int) -> None:
    """Each member gets its one of the root's tensors."""
    room = Room(output)
    if comm.rank == root:
        blocks = blocks_of(joined(inputs), [tensor.numel() for tensor in inputs])
        comm.Scatterv(blocks, message_of(room.flat), root)
    else:
        comm.Scatterv(None, message_of(room.flat), root)
    room.settle()


# --- a tensor for each


def prepared_reduce_scatter(
    comm: Any, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], op: Any
) -> Operation:
    """A reduce_scatter that is known to be possible.

    Raises:
        ValueError: there is no such operation on such numbers.
    """
    reductions = [Reduction("reduce_scatter", op, output.dtype) for output in outputs]

    def operation() -> None:
        for reduction, output, taken in zip(reductions, outputs, inputs, strict=True):
            counts = [tensor.numel() for tensor in taken]
            elements = reduction.prepared(joined(taken))
            result = torch.empty(counts[comm.rank], dtype=elements.dtype)
            comm.Reduce_scatter(message_of(elements), message_of(result), counts, reduction.op)
            reduction.settle(result, output, comm.size)

    return operation


def alltoall(comm: Any, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
    """Each member gives each a tensor."""
    counts = [tensor.numel() for tensor in outputs]
    row = torch.empty(sum(counts), dtype=inputs[0].dtype)
    sent = blocks_of(joined(inputs), [tensor.numel() for tensor in inputs])
    comm.Alltoallv(sent, blocks_of(row, counts))
    spread(row, outputs)


def alltoall_single(
    comm: Any, output: Tensor, taken: Tensor, received: list[int], sent: list[int]
) -> None:
    """The same, with parts of one tensor."""
    elements = joined([taken])
    room = Room(output, elements)
    comm.Alltoallv(blocks_of(elements, sent), blocks_of(room.flat, received))
    room.settle()
