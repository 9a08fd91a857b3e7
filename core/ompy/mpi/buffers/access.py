"""Getting at the bytes of whatever a user passes as a buffer.

The buffer protocol first; objects without it may speak DLPack or the CUDA array interface, as
long as their memory is the host's.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, NamedTuple

from ompy.raw import NATIVE

DATES: Final = "Mm"  # NumPy's characters of points in time and of spans
# What begins the name of items that the buffer protocol has no format for, like dates in a record.
FORMLESS: Final = "NumPy's "


class Access(NamedTuple):
    """The bytes of a buffer.

    Attributes:
        view: all of them (format B, one dimension).
        format: of the items: of the buffer protocol, or NumPy's character; empty for unknown.
        itemsize: bytes of an item.
        device: the memory is said to be a device's; Python code is not to look at it.
    """

    view: memoryview
    format: str
    itemsize: int
    device: bool = False


def acquire(buffer: Any, writable: bool) -> Access:
    """The bytes of a buffer.

    Args:
        buffer: an object with the buffer protocol, DLPack or the CUDA array interface.
        writable: whether it is to be written to.

    Raises:
        TypeError: it is no such object.
        BufferError: it is not contiguous, cannot be written to, or is no host memory.
    """
    view: memoryview | None = None
    form = ""
    try:
        try:
            view = memoryview(buffer)
        except ValueError:  # the items have no format: NumPy's message says so
            view, form = _formless(buffer)
    except TypeError:  # `contextlib.suppress` takes as long as all else here
        pass
    if view is None:  # not from within the handler: the user's traceback is long enough
        return _foreign(buffer, writable)
    if writable and view.readonly:
        raise BufferError("message: cannot receive into a read-only buffer")
    if writable and (
        view.format == "O" or getattr(getattr(buffer, "dtype", None), "hasobject", False)
    ):
        raise TypeError(
            "message: the buffer has Python objects, and bytes stored over them crash Python; "
            "the methods in lower case send objects"
        )
    return Access(raw_bytes(view), form or view.format, view.itemsize)


def _formless(buffer: Any) -> tuple[memoryview, str]:
    """The memory of an array whose items have no format in the buffer protocol, and their name.

    Raises:
        ValueError: it is no such array, or its items are more than their bytes.
    """
    kind = getattr(buffer, "dtype", None)
    if kind is None or getattr(kind, "hasobject", True):
        memoryview(buffer)  # its own error
        raise ValueError("message: the buffer has no format")
    form = kind.char if kind.char in DATES else f"{FORMLESS}{kind}"
    return memoryview(buffer.view(f"V{kind.itemsize}")), form


def raw_bytes(view: memoryview) -> memoryview:
    """The bytes under a view, in memory order.

    Raises:
        BufferError: it is contiguous neither in C nor in Fortran order.
    """
    if view.ndim == 1 and view.format == "B" and view.c_contiguous:
        return view
    if not view.nbytes:
        return memoryview(b"") if view.readonly else memoryview(bytearray())
    if view.c_contiguous and view.format in NATIVE:
        return view.cast("B")
    if not view.contiguous:
        raise BufferError("message: the buffer is not contiguous; send a copy or use a datatype")
    return _any_format(view)


def _any_format(view: memoryview) -> memoryview:
    """The bytes under a view in Fortran order, or of a format of NumPy's own.

    They are asked of whoever owns the memory, not of the view: a buffer of a view's own would be
    held by what is returned here, and the collector of Python 3.11 clears a memoryview in a cycle
    while others still hold its buffers, and crashes when they let go.
    """
    from _pickle import PickleBuffer  # the one way to such memory

    owner = view.obj
    with suppress(BufferError, TypeError):  # it has gaps, where a part of it has none
        whole = PickleBuffer(owner).raw()
        if whole.nbytes == view.nbytes:
            return whole.toreadonly() if view.readonly else whole
    return PickleBuffer(view).raw()  # a part: a memoryview that the user has cut out


def _foreign(buffer: Any, writable: bool) -> Access:
    if hasattr(buffer, "__dlpack__") and hasattr(buffer, "__dlpack_device__"):
        from ompy.mpi.buffers.dlpack import dlpack_bytes as bytes_of
    elif hasattr(buffer, "__cuda_array_interface__"):
        from ompy.mpi.buffers.cuda_array import cuda_array_bytes as bytes_of
    else:
        raise TypeError(
            f"message: expecting a buffer or a list/tuple that begins with one, not "
            f"{type(buffer).__name__}; the methods in lower case take any object"
        )
    found = bytes_of(buffer)
    if writable and found.view.readonly:
        raise BufferError("message: cannot receive into a read-only buffer")
    return found


def contiguous_size(shape: list[int], strides: list[int] | None, itemsize: int) -> int:
    """Bytes of an array given by shape and strides.

    Args:
        shape: extents.
        strides: bytes from one item to the next in each dimension; None for C order.
        itemsize: bytes of an item.

    Raises:
        BufferError: an extent is negative, or the array has gaps.
    """
    size = itemsize
    for extent in shape:
        if extent < 0:
            raise BufferError(f"message: an array of shape {tuple(shape)} cannot be")
        size *= extent
    if strides is None or not size:
        return size
    dimensions = range(len(shape))
    for order in (reversed(dimensions), dimensions):
        step = itemsize
        for dimension in order:
            if shape[dimension] > 1 and strides[dimension] != step:
                break
            step *= shape[dimension]
        else:
            return size
    raise BufferError("message: the buffer is not contiguous; send a copy or use a datatype")
