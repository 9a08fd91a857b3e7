"""`mpi4py.profile`: finding and loading a library."""

import ctypes
import os
import warnings
from pathlib import Path


def load(name, path):
    """Load a library into the process, with a warning when it cannot be loaded."""
    name = os.fsdecode(name)
    if path is None:
        folders = [""]
    elif isinstance(path, (str, bytes, os.PathLike)):
        folders = os.fsdecode(path).split(os.pathsep)
    else:
        folders = [os.fsdecode(folder) for folder in path]
    for folder in folders:
        for candidate in (name, f"lib{name}.so"):
            file = Path(folder, candidate)
            if file.is_file():
                try:
                    ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL)
                except OSError as problem:
                    warnings.warn(f"profiler {name!r}: {problem}", UserWarning, stacklevel=3)
                return
    raise ValueError(f"profiler {name!r} not found")
