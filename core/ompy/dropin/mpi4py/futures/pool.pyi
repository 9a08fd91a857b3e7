from ompy.addons.futures import MPICommExecutor as MPICommExecutor
from ompy.addons.futures import MPIPoolExecutor as MPIPoolExecutor
from ompy.addons.futures import ProcessPoolExecutor as ProcessPoolExecutor
from ompy.addons.futures import ThreadPoolExecutor as ThreadPoolExecutor
from ompy.addons.futures import get_comm_workers as get_comm_workers

__all__ = [
    "MPICommExecutor",
    "MPIPoolExecutor",
    "ProcessPoolExecutor",
    "ThreadPoolExecutor",
    "get_comm_workers",
]
