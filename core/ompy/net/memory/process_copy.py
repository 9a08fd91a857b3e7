"""Copies between processes of a host, and locks that they have in common: the contract."""

from __future__ import annotations

from ompy.compiled import U64, ccall, cclass
from ompy.data.loops import Runs, pieces_of
from ompy.net.base import LinkError


class RegionLocks:
    """Locks between the ranks of a host that have mapped a region: shared, or held by one.

    A process that ends, however it does, has none of them any more. Each rank has an object of its
    own, and has a lock once, however often it took it.
    """

    __slots__ = ()

    def try_lock(self, number: int, *, exclusive: bool) -> bool:
        """Have a lock if it is free for that now, whatever this rank had of it."""
        raise NotImplementedError

    def unlock(self, number: int) -> None:
        """Give it back."""
        raise NotImplementedError

    def close(self) -> None:
        """Give all back."""
        raise NotImplementedError


@cclass
class ProcessCopy:
    """Copies between this process's memory and another's on the same host.

    Attributes:
        forgets: somebody minds when `forget` is not called.
        identity: what a peer must know to name this process.
    """

    forgets: bool
    identity: int
    __slots__ = tuple(__annotations__)

    @ccall
    def address_of(self, view: memoryview) -> U64:
        """A number by which a peer names the first byte of `view`, until `forget`.

        The caller keeps the memory alive.
        """
        raise NotImplementedError

    @ccall
    def region_of(self, view: memoryview) -> tuple[int, int, int] | None:
        """Where `view` lies in memory from `Network.region`, for peers to map; None if it does not.

        Returns:
            Two numbers that a peer gives to `map`, and the offset in what it gets.
        """
        return None

    @ccall
    def map(self, process: int, descriptor: int, number: int) -> memoryview:
        """Memory of another process's `Network.region`. Numbers are of its `region_of`.

        Raises:
            LinkError: it is not there any more, or cannot be mapped.
        """
        raise LinkError("there are no regions here")

    def locks(self, process: int, descriptor: int, number: int) -> RegionLocks:
        """Locks of a region, one's own or another's; numbers are of its `region_of`.

        Raises:
            LinkError: it is not there any more, or there are no such locks.
        """
        raise LinkError("there are no regions here")

    def unmap(self, process: int, number: int) -> None:
        """What `map` gave is not needed any more; views of it keep it."""

    @ccall
    def forget(self, address: U64) -> None:
        """No peer will name `address` again. Only the virtual world can hold them to it."""

    @ccall
    def read(self, process: int, address: U64, view: memoryview) -> None:
        """Copy `len(view)` bytes at `address` of `process` into `view`.

        Raises:
            LinkError: the kernel refuses, the process is gone, or the address is not its own.
        """
        raise NotImplementedError

    @ccall
    def write(self, process: int, address: U64, view: memoryview) -> None:
        """Copy `view` to `address` of `process`. Raises as `read` does."""
        raise NotImplementedError

    @ccall
    def read_runs(self, process: int, address: U64, runs: Runs, view: memoryview) -> None:
        """Copy elements with gaps of `process`, packed, into `view`.

        Args:
            process: the other.
            address: of the first element's origin there.
            runs: where their bytes are.
            view: format B; as many bytes.

        Raises:
            LinkError: as `read` does.
        """
        done = 0
        for at, length in pieces_of(runs):
            self.read(process, address + at, view[done : done + length])
            done += length

    @ccall
    def write_runs(self, process: int, address: U64, runs: Runs, view: memoryview) -> None:
        """Copy packed bytes to elements with gaps of `process`. Arguments as for `read_runs`."""
        done = 0
        for at, length in pieces_of(runs):
            self.write(process, address + at, view[done : done + length])
            done += length
