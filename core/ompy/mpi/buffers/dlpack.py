"""Reading DLPack capsules (dmlc DLPack, versions 0 and 1.x)."""

from __future__ import annotations

import ctypes
from operator import index
from typing import Any, Final

from ompy.mpi.buffers.access import Access, contiguous_size
from ompy.mpi.buffers.addresses import check_readable, owned_view

CPU: Final = 1  # source: dlpack.h kDLCPU
HOST_DEVICES: Final = frozenset((1, 3, 11))  # source: dlpack.h CPU, CUDA host, ROCm host
CUDA: Final = 2  # source: dlpack.h kDLCUDA
LEGACY_STREAM: Final = -1  # source: array API: no synchronisation asked for
MAJOR: Final = 1  # source: dlpack.h DLPACK_MAJOR_VERSION
READ_ONLY: Final = 1  # source: dlpack.h DLPACK_FLAG_BITMASK_READ_ONLY
# source: dlpack.h DLDataTypeCode; by code and bytes, NumPy's character
_FLOATS: Final = {2: "e", 4: "f", 8: "d", 12: "g", 16: "g"}
_COMPLEX: Final = {8: "F", 16: "D", 24: "G", 32: "G"}
_KINDS: Final[dict[int, dict[int, str]]] = {
    0: {1: "b", 2: "h", 4: "i", 8: "l"},
    1: {1: "B", 2: "H", 4: "I", 8: "L"},
    2: _FLOATS,
    5: _COMPLEX,
    6: {1: "?"},
}
FLOAT: Final = 2  # source: dlpack.h kDLFloat


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = (ctypes.py_object, ctypes.c_char_p)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_pointer.restype = ctypes.c_void_p


def dlpack_bytes(exporter: Any) -> Access:
    """The bytes of an object that speaks DLPack. Its capsule is kept, not consumed.

    Raises:
        BufferError: the capsule is used up or malformed, the memory not contiguous or not the
            host's.
        TypeError, ValueError: `__dlpack_device__` does not answer with two integers.
    """
    device, number = exporter.__dlpack_device__()
    device, number = index(device), index(number)
    capsule = _capsule(exporter, None if device == CPU else LEGACY_STREAM)
    tensor, readonly = _tensor(capsule)
    itemsize = (tensor.bits * tensor.lanes + 7) // 8
    size = contiguous_size(*_geometry(tensor, itemsize), itemsize)
    address = (tensor.data or 0) + tensor.byte_offset
    if size and device not in HOST_DEVICES:
        check_readable(address, size)
    view = owned_view(address, size, readonly, (exporter, capsule))
    return Access(view, _format(tensor), itemsize, device not in HOST_DEVICES)


def _capsule(exporter: Any, stream: int | None) -> Any:
    try:
        return exporter.__dlpack__(stream=stream, max_version=(MAJOR, 0))
    except TypeError:  # an exporter of version 0 knows no max_version
        return exporter.__dlpack__(stream=stream)


def _tensor(capsule: Any) -> tuple[_Tensor, bool]:
    """The tensor in a capsule, and whether it is read-only."""
    if type(capsule).__name__ == "PyCapsule":
        if _is_valid(capsule, b"dltensor_versioned"):
            pointer = _pointer(capsule, b"dltensor_versioned")
            managed = _Versioned.from_address(pointer)
            if managed.major != MAJOR:
                raise BufferError(f"dlpack: version {managed.major} is not supported, only {MAJOR}")
            return managed.tensor, bool(managed.flags & READ_ONLY)
        if _is_valid(capsule, b"dltensor"):
            return _Tensor.from_address(_pointer(capsule, b"dltensor")), False
    raise BufferError("dlpack: __dlpack__ gave no capsule that is still to be used")


def _geometry(tensor: _Tensor, itemsize: int) -> tuple[list[int], list[int] | None]:
    """Shape, and strides in bytes."""
    if tensor.ndim < 0 or (tensor.ndim and not tensor.shape):
        raise BufferError(f"dlpack: a tensor of {tensor.ndim} dimensions without a shape")
    shape = [tensor.shape[axis] for axis in range(tensor.ndim)]
    if not tensor.ndim or not tensor.strides:
        return shape, None
    return shape, [tensor.strides[axis] * itemsize for axis in range(tensor.ndim)]


def _format(tensor: _Tensor) -> str:
    size = tensor.bits // 8
    if tensor.lanes == 1:
        return _KINDS.get(tensor.code, {}).get(size, "")
    if tensor.lanes == 2 and tensor.code == FLOAT:
        return _COMPLEX.get(2 * size, "")
    return ""
