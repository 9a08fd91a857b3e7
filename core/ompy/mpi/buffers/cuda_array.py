"""Reading the CUDA array interface (Numba, version 3)."""

from __future__ import annotations

import sys
from operator import index
from typing import Any, Final

from ompy.mpi.buffers.access import Access, contiguous_size
from ompy.mpi.buffers.addresses import check_readable, owned_view

FOREIGN: Final = ">" if sys.byteorder == "little" else "<"
NATIVE_ORDER: Final = "<" if sys.byteorder == "little" else ">"
# by NumPy's kind and size, its character
_KINDS: Final[dict[str, dict[int, str]]] = {
    "b": {1: "?"},
    "i": {1: "b", 2: "h", 4: "i", 8: "l"},
    "u": {1: "B", 2: "H", 4: "I", 8: "L"},
    "f": {2: "e", 4: "f", 8: "d", 16: "g"},
    "c": {8: "F", 16: "D", 32: "G"},
}


def cuda_array_bytes(exporter: Any) -> Access:
    """The bytes of an object with a CUDA array interface, whose memory the host can read.

    Raises:
        KeyError: a required entry is missing.
        TypeError, ValueError: an entry is malformed.
        BufferError: masked, not contiguous, of foreign byte order, or no memory of the host.
    """
    interface = exporter.__cuda_array_interface__
    address, readonly = interface["data"]
    typestr = interface["typestr"]
    shape = [index(extent) for extent in interface["shape"]]
    if not isinstance(interface, dict):
        raise TypeError("__cuda_array_interface__ is not a dict")
    strides = interface.get("strides")
    if strides is not None:
        strides = [index(stride) for stride in strides]
    if interface.get("mask") is not None:
        raise BufferError("__cuda_array_interface__: masked arrays cannot be sent")
    character, itemsize = _item(typestr)
    _check_description(interface.get("descr"), typestr)
    size = contiguous_size(shape, strides, itemsize)
    address = index(address or 0)
    if size:
        check_readable(address, size)
    return Access(owned_view(address, size, bool(readonly), exporter), character, itemsize, True)


def _item(typestr: Any) -> tuple[str, int]:
    """Format and size of an item."""
    if not isinstance(typestr, str):
        raise TypeError(f"__cuda_array_interface__: typestr is {typestr!r}, not a string")
    order, kind, itemsize = typestr[:1], typestr[1:2], int(typestr[2:])
    if order not in {NATIVE_ORDER, "|", "="} and not (order == FOREIGN and itemsize == 1):
        raise BufferError(f"__cuda_array_interface__: {typestr!r} has a foreign byte order")
    return _KINDS.get(kind, {}).get(itemsize, ""), itemsize


def _check_description(description: Any, typestr: str) -> None:
    if description is None:
        return
    if not isinstance(description, list):
        raise TypeError(f"__cuda_array_interface__: descr is {description!r}, not a list")
    if description != [("", typestr)]:
        import warnings

        text = "__cuda_array_interface__: 'descr' is ignored, the items are sent as bytes"
        warnings.warn(text, RuntimeWarning, stacklevel=6)
