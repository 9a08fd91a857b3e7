"""Files that a killed process leaves in /dev/shm, where a library of its own made them there.

Nothing of ours has a name in a file system; but the provider `shm` of libfabric gives its memory
one that begins with the process's number, and takes it away in handlers that SIGKILL does not call.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Final

SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - where Linux has it: shm_overview(7)


def remove_left(process: int, folder: str = SHARED_MEMORY) -> int:
    """Remove what a process that has ended has left: its number and a colon begin the name.

    Only plain files of this user are removed. Whoever has one mapped keeps the memory.

    Args:
        process: its number; of a process that this host's agent answers for, so that nobody else
            had it meanwhile.
        folder: where to look.

    Returns:
        How many were removed.
    """
    removed = 0
    try:
        found = [name for name in os.listdir(folder) if name.startswith(f"{process}:")]
    except OSError:  # a system without it
        return 0
    for name in found:
        path = os.path.join(folder, name)
        with suppress(OSError):  # it has gone, or is not ours to remove
            facts = os.lstat(path)
            if stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid():
                os.unlink(path)
                removed += 1
    return removed
