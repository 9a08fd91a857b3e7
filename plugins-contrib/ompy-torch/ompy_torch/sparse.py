"""Sums of sparse tensors, as embeddings with `sparse=True` have for gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributed import ReduceOp

from ompy_torch.reductions import kind_of
from ompy_torch.tensors import blocks_of, message_of


def check_sparse(tensors: Sequence[Tensor], op: Any) -> None:
    """See that sparse tensors can be reduced.

    Raises:
        ValueError: they are mixed with dense ones, or the operation is no sum.
    """
    if not all(tensor.is_sparse for tensor in tensors):
        raise ValueError("all_reduce: sparse and dense tensors in one call")
    if kind_of(op) != ReduceOp.SUM:
        raise ValueError("all_reduce: of sparse tensors there is SUM only; use tensor.to_dense()")


def allreduce_sparse(comm: Any, tensors: Sequence[Tensor]) -> None:
    """Each tensor becomes the sum of all members' (dense dimensions as they are)."""
    for tensor in tensors:
        own = tensor.detach().coalesce()
        entries = comm.allgather(own._nnz())  # noqa: SLF001 - torch has no other name for it
        indices = _gathered(comm, own.indices().t().contiguous(), entries)
        values = _gathered(comm, own.values().contiguous(), entries)
        total = torch.sparse_coo_tensor(indices.t(), values, own.shape).coalesce()
        with torch.no_grad():
            tensor.copy_(total)  # what is detached from a sparse tensor has entries of its own


def _gathered(comm: Any, rows: Tensor, entries: Sequence[int]) -> Tensor:
    """The rows of all members, in the order of ranks."""
    whole = rows.new_empty((sum(entries), *rows.shape[1:]))
    row = rows[0].numel() if len(rows) else whole.numel() // max(len(whole), 1)
    blocks = blocks_of(whole.view(-1), [count * row for count in entries])
    comm.Allgatherv(message_of(rows.view(-1)), blocks)
    return whole
