"""The drop-in package `mpi4py`: programs written for mpi4py run over ompy.

It is found by PYTHONPATH, which `ompy-run` sets. `mpi4py.MPI` is `ompy.MPI`.
"""

import sys as _sys

try:
    import ompy as _ompy
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        f"ompy-run was given a Python without ompy, {_sys.executable}: install ompy there, or "
        "write python for the one that ompy-run itself uses",
        name="ompy",
    ) from None
from ompy.mpi.processes.options import Options as Rc
from ompy.mpi.processes.options import rc

__version__ = f"4.1.2+ompy.{_ompy.__version__}"  # API level 4.1, by ompy
__author__ = "ompy"
__all__ = ["MPI"]

_sys.modules[f"{__name__}.rc"] = rc  # so that `import mpi4py.rc` gives it too


def get_include():
    """The folder of a header that stops whoever compiles with it: there is no C API."""
    from pathlib import Path

    return str(Path(__file__).parent / "include")


def get_config():
    """How the MPI library was built: there is none."""
    return {}


def profile(name, *, path=None):
    """Load a profiling library. MPI's calls do not go through it: they are Python's.

    Args:
        name: of the library, as a file or as the linker's `-l` would have it.
        path: folder or folders to look in.

    Raises:
        ValueError: there is no such library.
    """
    from mpi4py._profile import load

    load(name, path)
