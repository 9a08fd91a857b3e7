"""Cross-process copy by the kernel."""

from __future__ import annotations

import ctypes
import os
from typing import Final

from ompy.compiled import U64, ccall, cclass
from ompy.data.loops import Runs
from ompy.net.base import LinkError
from ompy.net.memory import vm
from ompy.net.memory.process_copy import ProcessCopy, RegionLocks
from ompy.net.memory.regions import Regions

_SET_PTRACER: Final = 0x59616D61  # Linux PR_SET_PTRACER, "Yama"
_ANY: Final = (1 << 64) - 1  # Linux PR_SET_PTRACER_ANY, (unsigned long) -1


@cclass
class KernelCopy(ProcessCopy):
    """process_vm_readv and process_vm_writev (Linux)."""

    _regions: Regions
    __slots__ = tuple(__annotations__)

    def __init__(self, regions: Regions | None = None) -> None:
        """Look whether there are such calls. Raises LinkError where the C library has none."""
        self._regions = Regions() if regions is None else regions
        self.forgets = False
        self.identity = os.getpid()
        if not vm.THERE:
            raise LinkError("this system has no process_vm_readv")
        _let_peers_copy()

    @ccall
    def address_of(self, view: memoryview) -> U64:
        """The virtual address of the first byte of `view`."""
        return vm.address_of(view)

    @ccall
    def region_of(self, view: memoryview) -> tuple[int, int, int] | None:
        """Where `view` lies in a region of this process."""
        if not self._regions.own:
            return None
        return self._regions.find(vm.address_of(view), len(view))

    @ccall
    def map(self, process: int, descriptor: int, number: int) -> memoryview:
        """Map a peer's region."""
        return self._regions.map(process, descriptor, number)

    def locks(self, process: int, descriptor: int, number: int) -> RegionLocks:
        """The kernel's locks of its file."""
        from ompy.net.memory.region_locks import FileLocks

        return FileLocks(process, descriptor, number)

    def unmap(self, process: int, number: int) -> None:
        """Forget a peer's region."""
        self._regions.unmap(process, number)

    @ccall
    def read(self, process: int, address: U64, view: memoryview) -> None:
        """Copy from another process."""
        copy_all(False, process, address, view)

    @ccall
    def write(self, process: int, address: U64, view: memoryview) -> None:
        """Copy to another process."""
        copy_all(True, process, address, view)

    @ccall
    def read_runs(self, process: int, address: U64, runs: Runs, view: memoryview) -> None:
        """Copy elements from another process, many runs at a time."""
        copy_runs(False, process, address, runs, view)

    @ccall
    def write_runs(self, process: int, address: U64, runs: Runs, view: memoryview) -> None:
        """Copy elements to another process, many runs at a time."""
        copy_runs(True, process, address, runs, view)


@ccall
def copy_runs(writes: bool, process: int, address: U64, runs: Runs, view: memoryview) -> None:
    """Copy all of `view`. Raises as `copy_all` does."""
    done: int = 0
    total: int = len(view)
    while done < total:
        moved: int = vm.move_runs(
            writes,
            process,
            address + runs.start,
            runs.inner,
            runs.stride,
            runs.outer_stride,
            runs.length,
            runs.table,
            runs.each,
            runs.extent,
            view,
            done,
        )
        if moved <= 0:
            raise _failed(total, process, moved)
        done += moved


def _failed(total: int, process: int, moved: int) -> LinkError:
    why = os.strerror(-moved)
    return LinkError(f"copy of {total} bytes with process {process}: {why}")


@ccall
def copy_all(writes: bool, process: int, address: U64, view: memoryview) -> None:
    """Copy all of `view`.

    Raises:
        LinkError: the kernel refuses, the process is gone, or the address is not its own.
    """
    done: int = 0
    total: int = len(view)
    while done < total:
        moved: int = vm.move(writes, process, address, view, done)
        if moved <= 0:
            raise _failed(total, process, moved)
        done += moved


@ccall
def address_of(view: memoryview) -> U64:
    """Virtual address of the first byte of `view`, see `vm.address_of`."""
    return vm.address_of(view)


def _let_peers_copy() -> None:
    """Allow the other ranks to copy with this process where Yama's ptrace_scope is 1.

    That is Ubuntu's default: only ancestors and whom a process names may reach its memory.
    There is no naming of a few, hence any process of the same user. A kernel without Yama
    refuses the call, which is as good.
    """
    allow = getattr(ctypes.CDLL(None), "prctl", None)
    if allow is not None:
        numbers = [ctypes.c_ulong] * 4
        allow.argtypes = [ctypes.c_int, *numbers]
        allow(_SET_PTRACER, _ANY, 0, 0, 0)
