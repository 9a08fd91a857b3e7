"""Memory by address: imported only when somebody needs one, as ctypes takes a while."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Final

from ompy import raw
from ompy.compiled import U64, ccall

READ: Final = 0x100  # PEP 3118: CPython PyBUF_READ
WRITE: Final = 0x200  # PEP 3118: CPython PyBUF_WRITE
ANY_CONTIGUOUS: Final = 0x98  # PEP 3118: CPython PyBUF_ANY_CONTIGUOUS


class PyBuffer(ctypes.Structure):
    """CPython's `Py_buffer`."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_void_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = (ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = (ctypes.c_void_p,)
_release_buffer.restype = None
_from_memory = ctypes.pythonapi.PyMemoryView_FromMemory
_from_memory.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
_from_memory.restype = ctypes.py_object


@ccall
def address_of(memory: Any) -> int:
    """Where the bytes of a contiguous buffer begin.

    Raises:
        BufferError: it is not contiguous.
        TypeError: it has no buffer.
    """
    found: int = raw.address(memory)
    if found >= 0:
        return found
    view = PyBuffer()
    _get_buffer(memory, ctypes.addressof(view), ANY_CONTIGUOUS)
    address = view.buf or 0
    _release_buffer(ctypes.addressof(view))
    return int(address)


@ccall
def view_at(address: U64, size: int, readonly: bool = False) -> memoryview:
    """The `size` bytes from `address` on. The caller keeps them alive."""
    if not size:
        return memoryview(b"") if readonly else memoryview(bytearray())
    made = raw.memory_at(address, size, readonly)
    if made is not None:
        view: memoryview = made
        return view
    view = _from_memory(address, size, READ if readonly else WRITE)
    assert isinstance(view, memoryview)
    return view


class _Owned:
    """What lives as long as a view of its memory.

    It goes within `__del__`, which Python runs with the exception under way put aside: compiled
    code lets go of a view on its way out of an error, and what a user's capsule runs then (a
    destructor in Python) would clear that.
    """

    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held

    def __del__(self) -> None:
        del self.held


def owned_view(address: int, size: int, readonly: bool, owner: object) -> memoryview:
    """The `size` bytes from `address` on; `owner` lives as long as the view."""
    if not size:
        return view_at(address, 0, readonly)
    block = (ctypes.c_ubyte * size).from_address(address)
    block.owner = _Owned(owner)  # type: ignore[attr-defined]
    view = memoryview(block).cast("B")
    return view.toreadonly() if readonly else view


def check_readable(address: int, size: int) -> None:
    """See that memory can be read from here, as a GPU's own memory cannot.

    The kernel is asked to write the first and the last byte to a pipe: it answers EFAULT where
    this process would be killed.

    Raises:
        BufferError: it cannot be read.
    """
    reader, writer = os.pipe()
    try:
        for place in (address, address + size - 1):
            os.write(writer, view_at(place, 1, readonly=True))
    except OSError:
        raise BufferError(
            f"the {size} bytes at {address:#x} are not memory of this host: they lie on a "
            f"device. Copy them to the host first; ompy moves host memory only"
        ) from None
    finally:
        os.close(reader)
        os.close(writer)
