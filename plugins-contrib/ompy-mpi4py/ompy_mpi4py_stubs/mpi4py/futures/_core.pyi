from ompy.addons.futures.failures import RemoteTraceback as RemoteTraceback
from ompy.addons.futures.task_queue import serialized as serialized
from ompy.addons.futures.task_queue import setup_mpi_threads as setup_mpi_threads
from ompy.addons.futures.world_pool import WorldPool
from ompy.MPI import Intercomm, Intracomm

__all__ = [
    "MAIN_RUN_NAME",
    "RemoteTraceback",
    "comm_split",
    "serialized",
    "setup_mpi_threads",
]

MAIN_RUN_NAME: str
SharedPool: WorldPool | None

def comm_split(comm: Intracomm, root: int) -> tuple[Intercomm, Intracomm]: ...
