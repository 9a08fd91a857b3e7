"""Memory of a process that the other ranks of its host map, instead of having the kernel copy.

A region is an anonymous memory file (memfd): it has no name in any file system, and goes with the
last process that has it open or mapped, however that ends. A peer opens it by the owner's process
and descriptor (`/proc/PID/fd/N`), sees by the inode that it is the one meant, and keeps it mapped.

When the owner frees a region its pages go at once, also from under the mappings of peers. The file
keeps its size, so that a peer which comes too late reads zeros and is not killed.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import resource
from bisect import bisect_right
from collections import OrderedDict
from typing import Final

from ompy.net.base import LinkError
from ompy.net.memory import vm

NAME: Final = "ompy-region"
NAME_SEEN: Final = f"/memfd:{NAME}"  # Linux's proc(5): what the link to such a file says
REGIONS_LEAST: Final = 128  # that a process may have in any case; arbitrary
REGIONS_MOST: Final = 4096  # arbitrary: each has a descriptor and a mapping
OF_DESCRIPTORS: Final = 4  # a region for so many descriptors that a process may have; arbitrary
MAPPED_MAX: Final = 4096  # arbitrary: of all peers together; more are mapped anew when needed


def regions_most() -> int:
    """How many regions this process may have: each needs a descriptor."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY:
        return REGIONS_MOST
    return max(REGIONS_LEAST, min(allowed // OF_DESCRIPTORS, REGIONS_MOST))


class Region:
    """One piece of such memory, as its owner has it.

    Attributes:
        address, size: of it here.
        descriptor: of its file.
        number: its inode: no two files have one at a time.
        block: the mapping.
    """

    __slots__ = ("address", "block", "descriptor", "number", "size")

    def __init__(self, size: int) -> None:
        self.descriptor = os.memfd_create(NAME, os.MFD_CLOEXEC)
        try:
            os.ftruncate(self.descriptor, size)
            self.block = mmap.mmap(self.descriptor, size)
        except (OSError, ValueError):
            os.close(self.descriptor)
            raise
        self.size = size
        self.number = os.fstat(self.descriptor).st_ino
        self.address = vm.address_of(memoryview(self.block))

    def free(self, *, pages: bool) -> None:
        """Let go of it; give the pages back, unless somebody here still has a view of them."""
        os.close(self.descriptor)
        if self._is_held() or not pages:
            return  # it goes with the last view, here or there
        with contextlib.suppress(OSError):
            self.block.madvise(mmap.MADV_REMOVE)
        self.block.close()

    def _is_held(self) -> bool:
        try:
            self.block.resize(self.size)  # refused while there are views, else changes nothing
        except BufferError:
            return True
        except (OSError, SystemError):  # a system that cannot resize
            return False
        return False


class Regions:
    """The regions of this process, and those of peers that it has mapped.

    Attributes:
        own: of this process, by address.
    """

    __slots__ = ("_addresses", "_mapped", "own")

    def __init__(self) -> None:
        self.own: list[Region] = []
        self._addresses: list[int] = []
        self._mapped: OrderedDict[tuple[int, int], memoryview] = OrderedDict()

    def allocate(self, size: int) -> memoryview:
        """Zeroed memory of `size` bytes, until `release`.

        Raises:
            LinkError: there are too many already, or the system gives none.
        """
        if len(self.own) >= REGIONS_LEAST and len(self.own) >= (most := regions_most()):
            raise LinkError(f"there are {most} regions already")
        if size > os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE:  # a memory file may be of any size
            raise LinkError(f"no region of {size} bytes: that is more than this host has")
        try:
            made = Region(size)
        except (OSError, ValueError, AttributeError) as problem:
            raise LinkError(f"no region of {size} bytes: {problem}") from None
        place = bisect_right(self._addresses, made.address)
        self.own.insert(place, made)
        self._addresses.insert(place, made.address)
        return memoryview(made.block)

    def release(self, address: int, *, pages: bool = True) -> None:
        """Free the region that begins at an address; harmless if none does.

        Args:
            address: of it.
            pages: as `Network.release_region` has it.
        """
        place = bisect_right(self._addresses, address) - 1
        if place >= 0 and self._addresses[place] == address:
            del self._addresses[place]
            self.own.pop(place).free(pages=pages)

    def find(self, address: int, size: int) -> tuple[int, int, int] | None:
        """Where some memory of this process lies: descriptor and number of a region, offset."""
        place = bisect_right(self._addresses, address) - 1
        if place < 0:
            return None
        region = self.own[place]
        offset = address - region.address
        return (region.descriptor, region.number, offset) if offset + size <= region.size else None

    def map(self, process: int, descriptor: int, number: int) -> memoryview:
        """A peer's region, mapped once.

        Raises:
            LinkError: it cannot be opened, or is another one by now.
        """
        key = process, number
        known = self._mapped.get(key)
        if known is None:
            known = self._mapped[key] = _map(process, descriptor, number)
            if len(self._mapped) > MAPPED_MAX:
                self._mapped.popitem(last=False)
        return known

    def unmap(self, process: int, number: int) -> None:
        """Forget a peer's region; it is unmapped with the last view."""
        self._mapped.pop((process, number), None)

    def close(self) -> None:
        """Let go of everything; what peers still read stays for them."""
        self._mapped.clear()
        self._addresses.clear()
        while self.own:
            self.own.pop().free(pages=False)


def _map(process: int, descriptor: int, number: int) -> memoryview:
    opened = opened_region(process, descriptor, number)
    try:
        return memoryview(mmap.mmap(opened, os.fstat(opened).st_size))
    except (OSError, ValueError) as problem:
        raise LinkError(f"cannot map region {number} of process {process}: {problem}") from None
    finally:
        os.close(opened)


def opened_region(process: int, descriptor: int, number: int) -> int:
    """A descriptor of a region's file, of its own.

    Raises:
        LinkError: it cannot be opened, or is another one by now.
    """
    path = f"/proc/{process}/fd/{descriptor}"
    try:
        opened = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as problem:
        raise LinkError(f"cannot open {path}: {problem.strerror}") from None
    try:
        if os.fstat(opened).st_ino == number and os.readlink(path).startswith(NAME_SEEN):
            return opened
    except OSError as problem:
        os.close(opened)
        raise LinkError(f"cannot look at {path}: {problem.strerror}") from None
    os.close(opened)
    raise LinkError(f"{path} is another file by now")
