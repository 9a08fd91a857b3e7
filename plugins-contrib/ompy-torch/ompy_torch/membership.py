"""The communicator of a group of torch."""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

_TAGS: Final = 1 << 30  # arbitrary: below ompy's largest tag


def communicator_of(group_id: str, members: list[int], rank: int, size: int) -> Any:
    """A communicator of the members, in torch's order; all of them call this.

    Args:
        group_id: torch's name of the group, the same at all members.
        members: ranks of the world; empty for all.
        rank: this process's rank in the group, as torch has it.
        size: of the group, as torch has it.

    Raises:
        NotImplementedError: this process holds several ranks, as in `ompy sim`.
        ValueError: torch's ranks are not the job's.
    """
    from ompy import MPI

    world = MPI.COMM_WORLD
    if members:
        chosen = members
    else:
        _check_world(world, rank, size)
        chosen = list(range(size))
    group = world.Get_group().Incl(chosen)
    # others may make another group at the same time: the tag tells the two apart
    comm = world.Create_group(group, crc32(group_id.encode()) % _TAGS)
    group.Free()
    comm.Set_name(f"torch group {group_id}")
    return comm


def _check_world(world: Any, rank: int, size: int) -> None:
    if (rank, size) == (world.rank, world.size):
        return
    raise ValueError(
        f"init_process_group: torch takes this process for rank {rank} of {size}, ompy for rank "
        f"{world.rank} of {world.size}. Start the program by ompy-run without RANK and WORLD_SIZE, "
        "or by torchrun alone"
    )
