"""The hardware that a process runs on, by MPI 4.1's names, and who shares a piece of it.

A *type* of resource has a name, as hwloc's types have. A process is *restricted* to a piece of
hardware if all threads that it may run on are in that piece; so what it is bound to decides.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Final

from ompy.data.constants import UNDEFINED
from ompy.mpi import constants
from ompy.mpi.info import Info
from ompy.mpi.state import CommState
from ompy.runtime.place.topology import (
    CORE,
    HWTHREAD,
    NUMA,
    PACKAGE,
    THREADS_MAX,
    PlaceError,
    Topology,
    parse_cpu_list,
    read_topology,
)

SHARED_MEMORY: Final = "mpi_shared_memory"  # MPI-4.0: a value of mpi_hw_resource_type
MACHINE: Final = "hwloc://Machine"
# reference: hwloc's names of its types, behind the scheme that MPI-4.1 shows
LEVELS: Final = {
    "hwloc://Package": PACKAGE,
    "hwloc://NUMANode": NUMA,
    "hwloc://L3Cache": "l3cache",
    "hwloc://L2Cache": "l2cache",
    "hwloc://L1Cache": "l1cache",
    "hwloc://Core": CORE,
    "hwloc://PU": HWTHREAD,
}
_ONLINE: Final = "devices/system/cpu/online"


def resources(*, virtual: bool, root: str = "/sys") -> dict[str, int]:
    """The types of resources here, and for each the number of the piece this process is in.

    Args:
        virtual: the world is simulated: its hosts have no processors.
        root: of the system's `/sys` tree, which may be a copy.

    Returns:
        The least thread of that piece, which is the same for all who are in it; -1 if the process
        may run outside of any single one.
    """
    found = {SHARED_MEMORY: 0, MACHINE: 0}
    if not virtual:
        try:
            with open(os.path.join(root, _ONLINE), encoding="ascii") as file:
                machine = read_topology(parse_cpu_list(file.read().strip()), root)
        except (OSError, ValueError, PlaceError):  # no such tree, as in some containers
            return found
        found |= pieces_of(machine, os.sched_getaffinity(0))
    return found


def pieces_of(machine: Topology, threads: Collection[int]) -> dict[str, int]:
    """For each type of resource the piece that has all of some threads, as `resources` says it."""
    found = {}
    for name, level in LEVELS.items():
        pieces = machine.levels.get(level)
        if pieces:
            whole = [piece for piece in pieces if piece.issuperset(threads)]
            found[name] = min(whole[0]) if whole else -1
    return found


def color_of_hardware(state: CommState, split_type: int, info: Info | None) -> int:
    """Which part of a communicator this member belongs to, if it is split by something they share.

    Args:
        state: the communicator.
        split_type: COMM_TYPE_SHARED, or another of these.
        info: what is shared: `mpi_hw_resource_type`, or `mpi_pset_name`.

    Returns:
        The colour; UNDEFINED if this member is in no part, -1 if this is no kind of split.
    """
    context = state.world.context
    node = context.me.node
    if split_type == constants.COMM_TYPE_SHARED:
        return node
    if split_type in {UNDEFINED, constants.COMM_TYPE_HW_UNGUIDED}:
        return UNDEFINED
    by_set = split_type == constants.COMM_TYPE_RESOURCE_GUIDED
    if not by_set and split_type != constants.COMM_TYPE_HW_GUIDED:
        return -1
    wanted = (info.get("mpi_hw_resource_type") if info else None) or ""
    if wanted:
        piece = resources(virtual=context.network.virtual).get(wanted, -1)
        return UNDEFINED if piece < 0 else node * THREADS_MAX + piece
    sets = {"mpi://world": context.me.world, "mpi://self": context.rank, "mpix://shared": node}
    name = (info.get("mpi_pset_name") if info and by_set else None) or ""
    return sets.get(name.lower(), UNDEFINED)
