"""Names of mpi4py's that its tests, and a few programs, look for here."""

from ompy.addons.futures.failures import RemoteTraceback
from ompy.addons.futures.main_module import MAIN_RUN_NAME
from ompy.addons.futures.task_queue import serialized, setup_mpi_threads
from ompy.addons.futures.world_pool import WorldPool

__all__ = [
    "MAIN_RUN_NAME",
    "RemoteTraceback",
    "comm_split",
    "serialized",
    "setup_mpi_threads",
]


def comm_split(comm, root):
    """One member on one side, all others on the other: the other side, and the own one.

    Null communicators where there is one member; the one member's own side is null.
    """
    from ompy import MPI
    from ompy.addons.futures.world_pool import split_members

    if comm.Get_size() == 1:
        return MPI.Intercomm(), MPI.Intracomm()
    other, own = split_members(comm, root)
    if comm.Get_rank() == root:
        own.Free()
    return other, own


def __getattr__(name):
    """`SharedPool`: what `python -m mpi4py.futures` has made of the job's ranks, or None."""
    if name == "SharedPool":
        return WorldPool.active
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
