"""Reductions: which of MPI's operations does what torch asks for, on which numbers.

MPI has no 16-bit floats and no truth values. Floats of 16 bits are added as float32 and rounded
once at the end. Truth values are bytes of 0 and 1, whose sum is "any" and whose product is "all".
"""

from __future__ import annotations

from typing import Any, Final

import torch
from ompy import MPI
from torch import Tensor
from torch.distributed import ReduceOp

from ompy_torch.tensors import NUMBERS

_OPS: Final[dict[Any, Any]] = {
    ReduceOp.SUM: MPI.SUM,
    ReduceOp.AVG: MPI.SUM,
    ReduceOp.PRODUCT: MPI.PROD,
    ReduceOp.MIN: MPI.MIN,
    ReduceOp.MAX: MPI.MAX,
    ReduceOp.BAND: MPI.BAND,
    ReduceOp.BOR: MPI.BOR,
    ReduceOp.BXOR: MPI.BXOR,
}
_BITWISE: Final = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
_OF_TRUTH: Final[dict[Any, Any]] = {
    ReduceOp.SUM: MPI.MAX,
    ReduceOp.PRODUCT: MPI.MIN,
    ReduceOp.MIN: MPI.MIN,
    ReduceOp.MAX: MPI.MAX,
    ReduceOp.BAND: MPI.MIN,
    ReduceOp.BOR: MPI.MAX,
    ReduceOp.BXOR: MPI.BXOR,
}
_SMALL_FLOATS: Final = (torch.float16, torch.bfloat16)


class Reduction:
    """One reduction of one dtype.

    Attributes:
        op: MPI's operation.
    """

    __slots__ = ("_average", "_dtype", "op")

    def __init__(self, call: str, op: ReduceOp | Any, dtype: torch.dtype) -> None:
        """Find the operation.

        Args:
            call: the name of the call, for errors.
            op: torch's operation.
            dtype: of the tensors.

        Raises:
            ValueError: there is no such operation on such numbers.
        """
        kind = kind_of(op)
        truth = dtype is torch.bool
        known = _OF_TRUTH if truth else _OPS
        wrong = kind in _BITWISE and dtype.is_floating_point
        wrong = wrong or (kind == ReduceOp.AVG and not dtype.is_floating_point)
        countable = truth or dtype in NUMBERS or dtype in _SMALL_FLOATS
        if kind not in known or wrong or not countable:
            raise ValueError(f"{call}: the back end ompy has no {name_of(op)} of {dtype}")
        self.op = known[kind]
        self._average = kind == ReduceOp.AVG
        self._dtype = dtype

    def prepared(self, tensor: Tensor) -> Tensor:
        """The elements as MPI reduces them, contiguous: the tensor itself, or a copy."""
        tensor = tensor.detach()
        if self._dtype in _SMALL_FLOATS:
            return tensor.to(torch.float32, memory_format=torch.contiguous_format)
        if self._dtype is torch.bool:
            return tensor.contiguous().view(torch.uint8)
        return tensor.contiguous()

    def settle(self, reduced: Tensor, tensor: Tensor, ranks: int) -> None:
        """Bring a result to where the user wants it.

        Args:
            reduced: the elements as MPI has reduced them; of the form of `prepared`.
            tensor: the user's.
            ranks: how many there were.
        """
        target = tensor.detach()
        if self._average:
            reduced.div_(ranks)
        if reduced.data_ptr() == target.data_ptr():
            return
        if self._dtype is torch.bool:
            reduced = reduced.view(torch.bool)
        target.copy_(reduced.view(target.shape))


def kind_of(op: ReduceOp | Any) -> Any:
    """The operation without what belongs to one use of it, such as a factor."""
    return getattr(op, "op", op)


def name_of(op: ReduceOp | Any) -> str:
    """The operation as users write it, without `ReduceOp.`."""
    return str(kind_of(op)).rpartition(".")[2]
