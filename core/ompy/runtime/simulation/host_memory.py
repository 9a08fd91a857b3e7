"""What simulated ranks of one host share: memory with names, regions, copies.

Each is a process, so their memory is real: named segments are pieces of a file without a name that
the scheduler has made for the host, and all that is there is what ranks of any job have. One
rank runs at a time, so what one writes while the others stand still depends on the seed alone.
"""

from __future__ import annotations

import mmap
import os
from typing import Final

from ompy.net.base import LinkError
from ompy.net.memory.kernel_copy import KernelCopy
from ompy.net.memory.process_copy import ProcessCopy
from ompy.net.memory.regions import Regions
from ompy.runtime.simulation.conducted import Conducted

# bytes; arbitrary: for the segments of a host. Only pages that are touched take memory.
ROOM: Final = 1 << 36


def make_file() -> int:
    """The descriptor of a host's memory for segments; ranks inherit it."""
    file = os.memfd_create("ompy-sim-host")
    os.ftruncate(file, ROOM)
    return file


class Segments:
    """Where the named segments of a host lie in its file; the scheduler has one for each host."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[int, int]] = {}
        self._next = 0

    def place(self, name: str, size: int) -> int:
        """Where a segment begins; who asks first has it made.

        Raises:
            LinkError: it has another size, or there is no room.
        """
        at, known = self._places.setdefault(name, (self._next, size))
        if known != size:
            raise LinkError(f"segment {name} has {known} bytes, not {size}")
        if at == self._next:
            self._next += -(-max(size, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        if self._next > ROOM:
            raise LinkError(f"no room for segment {name} of {size} bytes")
        return at


class HostMemory:
    """One rank's way to the memory of its host. Has the calls of `Network` about memory."""

    def __init__(self, world: Conducted, file: int) -> None:
        """Share with all who have that file."""
        self._world = world
        self._file = file
        self._regions = Regions()

    def segment(self, name: str, size: int) -> memoryview:
        """Memory that the ranks of this host share."""
        at = self._world.call("segment", name, size)
        return memoryview(mmap.mmap(self._file, max(size, 1), offset=at))[:size]

    def region(self, size: int) -> memoryview:
        """Memory that the others of this host may map."""
        return self._regions.allocate(size)

    def release_region(self, address: int, *, pages: bool = True) -> None:
        """It is needed no more."""
        self._regions.release(address, pages=pages)

    def copy(self) -> ProcessCopy:
        """The kernel's."""
        return KernelCopy(self._regions)
