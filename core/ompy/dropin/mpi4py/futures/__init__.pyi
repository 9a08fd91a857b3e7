from ompy.addons.futures import ALL_COMPLETED as ALL_COMPLETED
from ompy.addons.futures import BrokenExecutor as BrokenExecutor
from ompy.addons.futures import CancelledError as CancelledError
from ompy.addons.futures import Executor as Executor
from ompy.addons.futures import FIRST_COMPLETED as FIRST_COMPLETED
from ompy.addons.futures import FIRST_EXCEPTION as FIRST_EXCEPTION
from ompy.addons.futures import Future as Future
from ompy.addons.futures import InvalidStateError as InvalidStateError
from ompy.addons.futures import MPICommExecutor as MPICommExecutor
from ompy.addons.futures import MPIPoolExecutor as MPIPoolExecutor
from ompy.addons.futures import ProcessPoolExecutor as ProcessPoolExecutor
from ompy.addons.futures import ThreadPoolExecutor as ThreadPoolExecutor
from ompy.addons.futures import TimeoutError as TimeoutError
from ompy.addons.futures import as_completed as as_completed
from ompy.addons.futures import collect as collect
from ompy.addons.futures import compose as compose
from ompy.addons.futures import get_comm_workers as get_comm_workers
from ompy.addons.futures import wait as wait

from . import _core as _core

__all__ = [
    "Future",
    "Executor",
    "wait",
    "FIRST_COMPLETED",
    "FIRST_EXCEPTION",
    "ALL_COMPLETED",
    "as_completed",
    "CancelledError",
    "TimeoutError",
    "InvalidStateError",
    "BrokenExecutor",
    "MPIPoolExecutor",
    "MPICommExecutor",
    "ThreadPoolExecutor",
    "ProcessPoolExecutor",
    "get_comm_workers",
    "collect",
    "compose",
]
