"""`MPI.buffer`: memory as an object; its allocation, and addresses of memory.

Imported when first used: on Python 3.11 it needs ctypes.
"""

# ruff: noqa: SLF001 - one class, its own private members
from __future__ import annotations

import sys
from operator import index
from typing import Any, Final, Self

from ompy import raw
from ompy.compiled import Shown, cclass, cfunc
from ompy.data.convertor import allocate_memory, export_views
from ompy.data.errors import ERR_ARG
from ompy.mpi.buffers.access import acquire
from ompy.mpi.buffers.addresses import address_of, view_at
from ompy.mpi.buffers.exporter import Exporter
from ompy.mpi.buffers.markers import Marker
from ompy.mpi.errors import MPIException
from ompy.mpi.info import INFO_NULL, Info
from ompy.mpi.integers import whole_number
from ompy.mpi.kinds import check_kind
from ompy.net.base import LinkError, Network

SHARED_LEAST: Final = 1 << 14  # bytes; arbitrary: what is sent eagerly is copied in and out anyway
_KEEPS: Final = sys.version_info < (3, 12)  # memory that was exported is kept after its release
_NO_BYTES: Final = memoryview(bytearray())
PAGE: Final = 4096  # bytes; x86 and most aarch64


@cclass
class Piece:
    """What a piece of memory is, as `buffer` sets it."""

    _address: Shown[int]  # negative before it is asked for
    _device: Shown[bool]
    _is_own: Shown[bool]  # memory that it has allocated
    _kept: Shown[Any]  # such memory, after its release
    _obj: Shown[Any]
    _view: Shown[memoryview]
    __slots__ = tuple(__annotations__)


class buffer(Piece, Exporter):  # type: ignore[misc, unused-ignore]
    """A piece of memory: bytes with an address.

    Exports the buffer protocol. A slice is a buffer of the same memory.
    """

    __slots__ = ("__weakref__",)

    def __new__(cls, *args: Any) -> Self:
        """`buffer()` is empty, `buffer(obj)` the memory of an object."""
        if not args:
            return cls._of(memoryview(bytearray()), None)
        (obj,) = args
        made: Self = _piece_of(cls, obj, False)
        return made

    @classmethod
    def _of(cls, view: memoryview, obj: Any, device: bool = False, address: int = -1) -> Self:
        made: Self = _piece(cls, view, obj, device, address)
        return made

    @classmethod
    def allocate(cls, nbytes: int, clear: bool = False) -> Self:  # noqa: ARG003 - always clear
        """New memory of `nbytes` bytes, all zero."""
        size = whole_number(nbytes)
        if size < 0:
            raise ValueError(f"cannot allocate {size} bytes")
        view = allocate_memory(size)
        made: Self = _piece(cls, view, view.obj, False, -1)
        own: Piece = made
        own._is_own = True
        return made

    @classmethod
    def frombuffer(cls, obj: Any, readonly: bool = False) -> Self:
        """The memory of a contiguous buffer.

        Raises:
            TypeError: `obj` is no buffer.
            BufferError: it is not contiguous.
        """
        made: Self = _piece_of(cls, obj, readonly)
        return made

    @classmethod
    def fromaddress(cls, address: int, nbytes: int, readonly: bool = False) -> Self:
        """The memory at an address, which the caller keeps alive."""
        address, nbytes = whole_number(address), whole_number(nbytes)
        if nbytes < 0 or (nbytes and not address):
            raise ValueError(f"there are no {nbytes} bytes at address {address:#x}")
        made: Self = _piece(cls, view_at(address, nbytes, readonly), None, False, address)
        return made

    def __buffer__(self, flags: int, /) -> memoryview:
        return self._view

    def __len__(self) -> int:
        piece: Piece = self
        return len(piece._view)

    def __getitem__(self, item: Any, /) -> Any:
        view = _visible(self)
        if not isinstance(item, slice):
            return view[index(item)]
        piece: Piece = self
        part = _part(view, item)
        address = -1
        if piece._obj is None:  # nobody but the address says where it is
            address = piece._address + item.indices(len(view))[0]
        return _piece(type(self), part, piece._obj, False, address)

    def __setitem__(self, item: Any, value: Any, /) -> None:
        view = _visible(self)
        if view.readonly:
            raise TypeError("this memory is read-only")
        if not isinstance(item, slice):
            view[index(item)] = value
            return
        part = _part(view, item)
        if isinstance(value, int):
            part[:] = bytes((value,)) * len(part)
            return
        source = acquire(value, False).view
        if len(source) != len(part):
            raise ValueError(f"{len(source)} bytes do not fit into {len(part)}")
        part[:] = source

    def __delitem__(self, item: Any, /) -> None:
        raise NotImplementedError("memory cannot be deleted from a buffer")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def address(self) -> int:
        """Address of the first byte; 0 when there is no memory."""
        piece: Piece = self
        if piece._address < 0:
            piece._address = address_of(piece._view)
        return piece._address

    @property
    def obj(self) -> Any:
        """The object whose memory it is, or None."""
        piece: Piece = self
        return piece._obj

    @property
    def nbytes(self) -> int:
        """Length in bytes."""
        piece: Piece = self
        return len(piece._view)

    @property
    def readonly(self) -> bool:
        """Whether it cannot be written to."""
        piece: Piece = self
        return piece._view.readonly

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
        view = _visible(self)
        return view.cast(format) if shape is ... else view.cast(format, shape)  # type: ignore[call-overload, no-any-return]

    def tobytes(self, order: str | None = None) -> bytes:
        """A copy as bytes."""
        return _visible(self).tobytes()

    def toreadonly(self) -> Self:
        """The same memory, read-only."""
        piece: Piece = self
        view = piece._view.toreadonly()
        made: Self = _piece(type(self), view, piece._obj, piece._device, piece._address)
        return made

    def release(self) -> None:
        """Let go of the memory; the buffer is empty afterwards.

        Memory that it has allocated itself goes with this object: what was exported up to Python
        3.11 (numpy.frombuffer, memoryview) refers to the object, and not to its memory.
        """
        piece: Piece = self
        if piece._is_own and _KEEPS:
            piece._kept = piece._view
        piece._view = _NO_BYTES
        piece._obj = None
        piece._device = False
        piece._address = 0


export_views(buffer)


@cfunc
def _piece(kind: Any, view: memoryview, obj: Any, device: bool, address: int) -> Any:
    """A piece of memory, of a class of it."""
    found: Any = raw.instance(Piece, kind)
    made: Piece = found
    made._view = view
    made._obj = obj
    made._device = device
    made._is_own = False
    made._kept = None
    made._address = address if obj is not None or address >= 0 else 0
    return found


@cfunc
def _piece_of(kind: Any, obj: Any, readonly: bool) -> Any:
    """The memory of a contiguous buffer, as `frombuffer` gives it."""
    if isinstance(obj, (list, tuple)):
        raise TypeError(f"expecting a buffer, not a {type(obj).__name__}")
    view: memoryview | None = raw.numbers(obj)
    device: bool = False
    if view is None:
        found = acquire(obj, False)
        view, device = found.view, found.device
    return _piece(kind, view.toreadonly() if readonly else view, obj, device, -1)


@cfunc
def _visible(piece: Piece) -> memoryview:
    if piece._device:
        raise BufferError("this memory is a device's; Python cannot look at it")
    return piece._view


@cfunc
def _part(view: memoryview, item: Any) -> memoryview:
    """The bytes that a slice is of."""
    if item.step is not None and item.step != 1:
        raise IndexError("a slice of memory has step 1")
    found: memoryview = view[item]
    return found


def Get_address(location: Any) -> int:
    """The address of a buffer's first byte."""
    if location is None:
        return 0
    if isinstance(location, buffer):
        return location.address
    if isinstance(location, Marker):
        return int(location)
    view = raw.numbers(location)
    return address_of(acquire(location, False).view if view is None else view)


def Alloc_mem(size: int, info: Any = INFO_NULL) -> buffer:
    """New memory of `size` bytes, all zero, until `Free_mem`.

    With other ranks on this host it is memory that they can map: large messages from and to it
    are copied without the kernel.

    Raises:
        MPIException: ERR_ARG, the size is negative.
    """
    if type(info) is not Info:
        check_kind(info, "Info", "info")  # hints are ignored
    if type(size) is int and 0 <= size < SHARED_LEAST:
        memory = bytearray(size)
        small: buffer = _piece(buffer, memoryview(memory), memory, False, -1)
        own: Piece = small
        own._is_own = True
        return small
    wanted = whole_number(size)
    if wanted < 0:
        raise MPIException(ERR_ARG, f"cannot allocate {wanted} bytes")
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
    piece: Piece = mem
    address = piece._address
    mem.release()
    network = _network() if address > 0 else None  # of other memory nobody knows
    if network is not None:
        network.release_region(address)
