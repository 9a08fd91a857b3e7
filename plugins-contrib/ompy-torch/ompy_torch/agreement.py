"""Whether all members make the same call, with TORCH_DISTRIBUTED_DEBUG=DETAIL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch.distributed as dist
from torch import Tensor


def is_wanted() -> bool:
    """Whether the user asked torch for its most thorough checks."""
    return dist.get_debug_level() == dist.DebugLevel.DETAIL


def check_agreement(
    comm: Any, call: str, like: Sequence[Any], operation: Callable[[], None]
) -> Callable[[], None]:
    """The same operation, with a comparison of the members' calls before it.

    Args:
        comm: the members.
        call: the name of the call.
        like: what all must have alike; of tensors that are dtype and shape.
        operation: what is done if they have.
    """
    own = f"{call}({', '.join(_described(part) for part in like)})"

    def checked() -> None:
        said = comm.allgather(own)
        if len(set(said)) > 1:
            others = "; ".join(f"rank {rank}: {text}" for rank, text in enumerate(said))
            raise dist.DistBackendError(f"the members of a group make different calls: {others}")
        operation()

    return checked


def _described(part: Any) -> str:
    if isinstance(part, Tensor):
        return f"{str(part.dtype).removeprefix('torch.')}{list(part.shape)}"
    if isinstance(part, (list, tuple)):
        return ", ".join(_described(each) for each in part)
    return str(part)
