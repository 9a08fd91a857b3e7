"""`MPI.buffer`: memory as an object; its allocation, and addresses of memory.

Imported when first used: on Python 3.11 it needs ctypes.
"""

# ruff: noqa: SLF001 - one class, its own private members
from __future__ import annotations

import sys
from operator import index
from typing import Any, Final, Self

from ompy.data.convertor import allocate_memory, export_views
from ompy.mpi.buffers.access import acquire
from ompy.mpi.buffers.addresses import address_of, view_at
from ompy.mpi.buffers.exporter import Exporter
from ompy.mpi.buffers.markers import Marker
from ompy.mpi.info import INFO_NULL
from ompy.mpi.integers import whole_number
from ompy.mpi.kinds import check_kind
from ompy.net.base import LinkError, Network

SHARED_LEAST: Final = 1 << 14  # bytes; arbitrary: what is sent eagerly is copied in and out anyway
_NO_BYTES: Final = memoryview(bytearray())
PAGE: Final = 4096  # bytes; x86 and most aarch64


class buffer(Exporter):  # type: ignore[misc, unused-ignore]
    """A piece of memory: bytes with an address.

    Exports the buffer protocol. A slice is a buffer of the same memory.
    """

    __slots__ = ("__weakref__", "_address", "_device", "_is_own", "_kept", "_obj", "_view")

    _view: memoryview
    _obj: Any
    _device: bool
    _address: int
    _is_own: bool  # memory that it has allocated
    _kept: memoryview  # such memory, after its release

    def __new__(cls, *args: Any) -> Self:
        """`buffer()` is empty, `buffer(obj)` the memory of an object."""
        if not args:
            return cls._of(memoryview(bytearray()), None)
        (obj,) = args
        return cls.frombuffer(obj)

    @classmethod
    def _of(cls, view: memoryview, obj: Any, device: bool = False, address: int = -1) -> Self:
        self = object.__new__(cls)
        self._view = view
        self._obj = obj
        self._device = device
        self._is_own = False
        self._address = address if obj is not None or address >= 0 else 0
        return self

    @classmethod
    def allocate(cls, nbytes: int, clear: bool = False) -> Self:  # noqa: ARG003 - always clear
        """New memory of `nbytes` bytes, all zero."""
        size = whole_number(nbytes)
        if size < 0:
            raise ValueError(f"cannot allocate {size} bytes")
        view = allocate_memory(size)
        made = cls._of(view, view.obj)
        made._is_own = True
        return made

    @classmethod
    def frombuffer(cls, obj: Any, readonly: bool = False) -> Self:
        """The memory of a contiguous buffer.

        Raises:
            TypeError: `obj` is no buffer.
            BufferError: it is not contiguous.
        """
        if isinstance(obj, (list, tuple)):
            raise TypeError(f"expecting a buffer, not a {type(obj).__name__}")
        found = acquire(obj, False)
        view = found.view.toreadonly() if readonly else found.view
        return cls._of(view, obj, found.device)

    @classmethod
    def fromaddress(cls, address: int, nbytes: int, readonly: bool = False) -> Self:
        """The memory at an address, which the caller keeps alive."""
        address, nbytes = whole_number(address), whole_number(nbytes)
        if nbytes < 0 or (nbytes and not address):
            raise ValueError(f"there are no {nbytes} bytes at address {address:#x}")
        return cls._of(view_at(address, nbytes, readonly), None, address=address)

    def __buffer__(self, flags: int, /) -> memoryview:
        return self._view

    def __len__(self) -> int:
        return len(self._view)

    def __getitem__(self, item: Any, /) -> Any:
        view = self._visible()
        if isinstance(item, slice):
            start, stop = self._range(item)
            address = self._address + start if self._address >= 0 else -1
            return type(self)._of(view[start:stop], self._obj, address=address)
        return view[index(item)]

    def __setitem__(self, item: Any, value: Any, /) -> None:
        view = self._visible()
        if view.readonly:
            raise TypeError("this memory is read-only")
        if not isinstance(item, slice):
            view[index(item)] = value
            return
        start, stop = self._range(item)
        if isinstance(value, int):
            view[start:stop] = bytes((value,)) * (stop - start)
            return
        source = acquire(value, False).view
        if len(source) != stop - start:
            raise ValueError(f"{len(source)} bytes do not fit into {stop - start}")
        view[start:stop] = source

    def __delitem__(self, item: Any, /) -> None:
        raise NotImplementedError("memory cannot be deleted from a buffer")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _visible(self) -> memoryview:
        if self._device:
            raise BufferError("this memory is a device's; Python cannot look at it")
        return self._view

    def _range(self, item: slice) -> tuple[int, int]:
        start, stop, step = item.indices(len(self._view))
        if step != 1:
            raise IndexError("a slice of memory has step 1")
        return start, max(start, stop)

    @property
    def address(self) -> int:
        """Address of the first byte; 0 when there is no memory."""
        if self._address < 0:
            self._address = address_of(self._view)
        return self._address

    @property
    def obj(self) -> Any:
        """The object whose memory it is, or None."""
        return self._obj

    @property
    def nbytes(self) -> int:
        """Length in bytes."""
        return len(self._view)

    @property
    def readonly(self) -> bool:
        """Whether it cannot be written to."""
        return self._view.readonly

    @property
    def format(self) -> str:
        """Format of an item: always B."""
        return "B"

    @property
    def itemsize(self) -> int:
        """Bytes of an item: always 1."""
        return 1

    def cast(self, format: str, shape: Any = ...) -> memoryview:
        """A memoryview with another format, and a shape if given."""
        view = self._visible()
        return view.cast(format) if shape is ... else view.cast(format, shape)  # type: ignore[call-overload, no-any-return]

    def tobytes(self, order: str | None = None) -> bytes:
        """A copy as bytes."""
        return self._visible().tobytes()

    def toreadonly(self) -> Self:
        """The same memory, read-only."""
        return type(self)._of(self._view.toreadonly(), self._obj, self._device, self._address)

    def release(self) -> None:
        """Let go of the memory; the buffer is empty afterwards.

        Memory that it has allocated itself goes with this object: what was exported up to Python
        3.11 (numpy.frombuffer, memoryview) refers to the object, and not to its memory.
        """
        if self._is_own and sys.version_info < (3, 12):
            self._kept = self._view
        self._view = _NO_BYTES
        self._obj = None
        self._device = False
        self._address = 0


export_views(buffer)


def Get_address(location: Any) -> int:
    """The address of a buffer's first byte."""
    if location is None:
        return 0
    if isinstance(location, Marker):
        return int(location)
    if isinstance(location, buffer):
        return location.address
    return address_of(acquire(location, False).view)


def Alloc_mem(size: int, info: Any = INFO_NULL) -> buffer:
    """New memory of `size` bytes, all zero, until `Free_mem`.

    With other ranks on this host it is memory that they can map: large messages from and to it
    are copied without the kernel.
    """
    check_kind(info, "Info", "info")  # hints are ignored
    if type(size) is int and 0 <= size < SHARED_LEAST:
        view = allocate_memory(size)
        small: buffer = object.__new__(buffer)
        small._view = view
        small._obj = view.obj
        small._device = False
        small._is_own = True
        small._address = -1
        return small
    wanted = whole_number(size)
    shared = _shared(wanted) if wanted >= SHARED_LEAST else None
    if shared is None:
        return buffer.allocate(wanted)
    made = buffer._of(shared, shared.obj)
    made._is_own = True
    made._address = address_of(shared)  # what `Free_mem` knows shared memory by
    return made


def _shared(size: int) -> memoryview | None:
    """Memory for other ranks to map, or None where there are none, or none is to be had."""
    network = _network()
    if network is None:
        return None
    try:
        return network.region(-(-size // PAGE) * PAGE)[:size]
    except LinkError:
        return None


def _network() -> Network | None:
    """This rank's, if there are other ranks on its host."""
    from ompy.mpi.processes import life

    if not life.is_up():
        return None
    context = life.current().context
    return context.network if len(context.local_procs()) > 1 else None


def Free_mem(mem: buffer) -> None:
    """Let go of memory from `Alloc_mem`; what still has a view of it keeps it alive.

    Up to Python 3.11 so does the object itself (`buffer.release`).
    """
    if not isinstance(mem, buffer):
        raise TypeError(f"expecting memory from Alloc_mem, not {type(mem).__name__}")
    address = mem._address
    mem.release()
    network = _network() if address > 0 else None  # of other memory nobody knows
    if network is not None:
        network.release_region(address)
