"""Tensors as the messages they are: a view of their bytes and an MPI datatype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from ompy import MPI
from ompy.mpi.buffers.addresses import owned_view
from torch import Tensor

# datatypes that MPI can add, too; all else travels as bytes, or as another type (reductions.py)
NUMBERS: Final[dict[torch.dtype, Any]] = {
    torch.uint8: MPI.UINT8_T,
    torch.int8: MPI.INT8_T,
    torch.int16: MPI.INT16_T,
    torch.int32: MPI.INT32_T,
    torch.int64: MPI.INT64_T,
    torch.uint16: MPI.UINT16_T,
    torch.uint32: MPI.UINT32_T,
    torch.uint64: MPI.UINT64_T,
    torch.float32: MPI.FLOAT,
    torch.float64: MPI.DOUBLE,
}


def check_tensors(call: str, tensors: Sequence[Tensor], *, sparse: bool = False) -> None:
    """See that a call can take its tensors.

    Args:
        call: its name, for the error.
        tensors: all of them.
        sparse: COO tensors are taken, too.

    Raises:
        ValueError: one is not on the CPU, or has no bytes of its own in a row.
    """
    for tensor in tensors:
        if tensor.device.type != "cpu":
            raise ValueError(
                f"{call}: a tensor is on {tensor.device}; the back end ompy takes tensors on the "
                "CPU: use tensor.cpu(), or another back end for this device"
            )
        if tensor.layout is not torch.strided and not (sparse and tensor.is_sparse):
            raise ValueError(
                f"{call}: a tensor has the layout {tensor.layout}; use tensor.to_dense()"
            )


def check_alike(call: str, tensors: Sequence[Tensor], dtype: torch.dtype, numel: int = -1) -> None:
    """See that tensors of one call are of one dtype, and of one size.

    Args:
        call: its name, for the error.
        tensors: all of them.
        dtype: what each must have.
        numel: elements that each must have; below 0 for any.

    Raises:
        ValueError: one has another.
    """
    for tensor in tensors:
        if tensor.dtype != dtype:
            raise ValueError(f"{call}: tensors of {tensor.dtype} and of {dtype} in one call")
        if numel not in (-1, tensor.numel()):
            raise ValueError(
                f"{call}: a tensor has {tensor.numel()} elements where {numel} belong: "
                f"its shape is {tuple(tensor.shape)}"
            )


def message_of(tensor: Tensor) -> list[Any]:
    """A contiguous tensor as MPI takes it; its memory lives as long as what is returned."""
    tensor = tensor.detach()
    view = owned_view(tensor.data_ptr(), tensor.nbytes, False, tensor)
    return [view, NUMBERS.get(tensor.dtype, MPI.BYTE)]


def blocks_of(tensor: Tensor, counts: Sequence[int]) -> list[Any]:
    """A contiguous tensor as a block for each rank, one after the other.

    Args:
        tensor: all blocks.
        counts: elements of each.
    """
    view, datatype = message_of(tensor)
    unit = 1 if tensor.dtype in NUMBERS else tensor.element_size()
    return [view, [count * unit for count in counts], datatype]


def joined(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of all tensors in a row: those of a single contiguous one itself."""
    if len(tensors) == 1:
        return tensors[0].detach().contiguous().view(-1)
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def spread(row: Tensor, tensors: Sequence[Tensor]) -> None:
    """Copy elements in a row to the tensors that they belong to."""
    pieces = torch.split(row, [tensor.numel() for tensor in tensors])
    for piece, tensor in zip(pieces, tensors, strict=True):
        target = tensor.detach()
        if target.data_ptr() != piece.data_ptr():
            target.copy_(piece.view(target.shape))


def overlap(one: Tensor, other: Tensor) -> bool:
    """Whether two contiguous tensors share bytes."""
    begin, start = one.data_ptr(), other.data_ptr()
    return begin < start + other.nbytes and start < begin + one.nbytes


class Room:
    """A contiguous tensor to receive into: the user's, or one that is copied there at the end.

    Attributes:
        flat: the elements, in a row.
    """

    __slots__ = ("_target", "flat")

    def __init__(self, target: Tensor, avoided: Tensor | None = None) -> None:
        """Make room.

        Args:
            target: the user's tensor.
            avoided: what is sent meanwhile and must not be overwritten.
        """
        self._target = target.detach()
        own = self._target.is_contiguous() and (avoided is None or not overlap(target, avoided))
        self.flat = (
            self._target
            if own
            else torch.empty_like(self._target, memory_format=torch.contiguous_format)
        ).view(-1)

    def settle(self) -> None:
        """What was received is where the user wants it."""
        if self.flat.data_ptr() != self._target.data_ptr():
            self._target.copy_(self.flat.view(self._target.shape))
