from collections.abc import Sequence
from os import PathLike

from ompy.mpi.processes.options import Options as Rc

from . import MPI as MPI

__version__: str
__author__: str
__all__: list[str] = ["MPI"]

rc: Rc

def get_include() -> str: ...
def get_config() -> dict[str, str]: ...
def profile(
    name: str | bytes | PathLike[str],
    *,
    path: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]] | None = None,
) -> None: ...
