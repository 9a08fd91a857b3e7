"""Locks of a region: the kernel's, of the bytes of its file.

They are those of an open file description (Linux 3.15), of which each rank has its own. So the
kernel gives them back when a process ends, and what else a process opens and closes of the same
file, as who maps it does, takes none of them away. A lock's number is a byte of the file; nothing
is read or written there.
"""

from __future__ import annotations

import fcntl
import os
from struct import Struct

from ompy.net.base import LinkError
from ompy.net.memory.process_copy import RegionLocks
from ompy.net.memory.regions import opened_region

_FLOCK = Struct("@hhqqi")  # Linux fcntl(2): struct flock with 64 bit offsets


class FileLocks(RegionLocks):
    """The locks of one rank in one region."""

    __slots__ = ("_descriptor",)

    def __init__(self, process: int, descriptor: int, number: int) -> None:
        """Open the region's file.

        Raises:
            LinkError: it is not there, or this system has no such locks.
        """
        if not hasattr(fcntl, "F_OFD_SETLK"):
            raise LinkError("this system has no locks of open file descriptions")
        self._descriptor = opened_region(process, descriptor, number)

    def try_lock(self, number: int, *, exclusive: bool) -> bool:
        """Ask the kernel."""
        return self._set(fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK, number)

    def unlock(self, number: int) -> None:
        """Tell the kernel."""
        self._set(fcntl.F_UNLCK, number)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _set(self, kind: int, number: int) -> bool:
        asked = _FLOCK.pack(kind, os.SEEK_SET, number, 1, 0)
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, asked)
        except BlockingIOError:
            return False
        except PermissionError:  # fcntl(2): the same, on some systems
            return False
        return True
