"""Whether another MPI library is loaded beside ompy: its ranks are others than ours."""

from __future__ import annotations

import os
import re
from typing import Final

from ompy import outputs

MAPS: Final = "/proc/self/maps"  # Linux
# libmpi.so.40 of Open MPI, libmpi.so.12 and libmpich.so of MPICH and its kin, libmpi_abi.so of both
_LIBRARY: Final = re.compile(rb"(/\S*/libmpi(?:ch|_abi)?(?:-\w+)?[.]so\S*)$", re.MULTILINE)


def foreign_library() -> str:
    """The file of another MPI library that this process has loaded; empty for none."""
    try:
        with open(MAPS, "rb") as maps:
            found = _LIBRARY.search(maps.read())
    except OSError:  # another system
        return ""
    return os.fsdecode(found.group(1)) if found else ""


def warn_of_foreign_library(rank: int) -> None:
    """Say so at the end of the first rank of a host, as it may be loaded at any time before."""
    library = foreign_library()
    if library:
        outputs.tell(
            f"ompy: rank {rank} has another MPI library loaded, {library}: what is linked with it "
            "knows nothing of ompy's ranks, and takes each process for a job of its own. Build it "
            "without MPI, or run all of the program over that library\n",
            "warning",
            "warning",
        )
