"""MPI.buffer, addresses, and buffers of objects without the buffer protocol."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from array import array
from typing import Any

import numpy as np
import pytest
from ompy import MPI
from ompy.data.errors import ERR_ARG
from ompy.mpi.buffers.access import acquire, contiguous_size
from ompy.mpi.buffers.addresses import address_of, check_readable
from ompy.mpi.buffers.markers import BOTTOM, BUFFER_AUTOMATIC, IN_PLACE
from ompy.mpi.buffers.memory import Alloc_mem, Free_mem, Get_address, buffer


def test_an_empty_buffer() -> None:
    empty = buffer()
    assert (empty.address, empty.obj, empty.nbytes, empty.readonly) == (0, None, 0, False)
    empty[:] = 0
    view = memoryview(empty)
    assert (view.format, view.shape, view.readonly) == ("B", (0,), False)


def test_it_exports_the_memory_it_was_made_of() -> None:
    data = bytearray(b"abcdef")
    buf = buffer(data)
    assert type(buf) is buffer
    view = memoryview(buf)
    view[0] = 65
    buf[1:3] = b"BC"
    buf[-1] = 70
    assert data == b"ABCdeF"
    assert bytes(buf[1:3]) == b"BC"
    assert buf.address == address_of(data)
    assert buf[2:].address == address_of(data) + 2
    assert np.frombuffer(buf, "B").tolist() == list(data)
    buf.release()
    del view
    gc.collect()
    data.append(1)  # nothing holds on to the memory any more


def test_read_only_memory() -> None:
    buf = buffer(b"abc")
    assert memoryview(buf).readonly
    with pytest.raises(TypeError):
        buf[0] = 1
    shut = buffer(bytearray(3)).toreadonly()
    assert shut.readonly
    assert memoryview(shut).readonly


def test_the_exporter_does_not_leak() -> None:
    data = bytearray(10)
    before = sys.getrefcount(buffer)
    for _ in range(1000):
        memoryview(buffer(data)).release()
    gc.collect()
    assert sys.getrefcount(buffer) - before < 10
    data.append(0)


def test_indices() -> None:
    buf = Alloc_mem(4)
    assert buf.tobytes() == bytes(4)
    for index, error in ((4, IndexError), (slice(0, 4, 2), IndexError), (None, TypeError)):
        with pytest.raises(error):
            buf[index]
        with pytest.raises(error):
            buf[index] = 0
    with pytest.raises(ValueError, match="do not fit"):
        buf[0:2] = b"abc"
    buf[:] = 7
    assert buf.cast("i")[0] == 0x07070707
    Free_mem(buf)
    assert (buf.address, len(buf)) == (0, 0)


@pytest.mark.parametrize("bad", [None, 0, 1.5, [], ()])
def test_no_buffers(bad: Any) -> None:
    with pytest.raises(TypeError):
        buffer(bad)


def test_memory_at_an_address() -> None:
    data = array("B", b"xyz")
    buf = buffer.fromaddress(data.buffer_info()[0], 3)
    buf[0] = 65
    assert data.tobytes() == b"Ayz"
    for address, size in ((0, 1), (1, -1)):
        with pytest.raises(ValueError, match="no"):
            buffer.fromaddress(address, size)
    with pytest.raises(ValueError, match="allocate"):
        buffer.allocate(-1)


def test_addresses() -> None:
    data = np.arange(10)
    assert Get_address(data) == data.__array_interface__["data"][0]
    assert Get_address(b"abc") == address_of(b"abc")
    assert [Get_address(marker) for marker in (None, BOTTOM, IN_PLACE, BUFFER_AUTOMATIC)] == [
        0,
        0,
        1,
        2,
    ]
    check_readable(Get_address(data), data.nbytes)
    with pytest.raises(BufferError, match="device"):
        check_readable(0x10, 4)


@pytest.mark.parametrize(
    ("shape", "strides", "size"),
    [
        ([], None, 4),
        ([3], None, 12),
        ([0, 5], [1, 1], 0),
        ([2, 3], [12, 4], 24),
        ([2, 3], [4, 8], 24),
        ([1, 3, 1], [99, 4, 7], 12),
    ],
)
def test_contiguous(shape: list[int], strides: list[int] | None, size: int) -> None:
    assert contiguous_size(shape, strides, 4) == size


@pytest.mark.parametrize(("shape", "strides"), [([2, 3], [16, 4]), ([3], [0]), ([-1], None)])
def test_not_contiguous(shape: list[int], strides: list[int] | None) -> None:
    with pytest.raises(BufferError):
        contiguous_size(shape, strides, 4)


class Foreign:
    """Speaks DLPack and nothing else."""

    def __init__(self, data: np.ndarray) -> None:
        self._data = data

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._data.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._data.__dlpack_device__()


class Old(Foreign):
    """Knows no `max_version`."""

    def __dlpack__(self, stream: Any = None) -> Any:
        return self._data.__dlpack__(stream=stream)


@pytest.mark.parametrize("kind", [Foreign, Old])
@pytest.mark.parametrize("code", "?bhilBHILfdFD")
def test_dlpack(kind: type[Foreign], code: str) -> None:
    data = np.ones((2, 3), code)
    found = acquire(kind(data), kind is Foreign)
    assert (found.format, found.itemsize, len(found.view)) == (code, data.itemsize, data.nbytes)
    assert bytes(found.view) == data.tobytes()


@pytest.mark.parametrize("kind", [Foreign, Old])
def test_a_view_keeps_the_tensor(kind: type[Foreign]) -> None:
    owner = acquire(kind(np.full(1000, 3, "B")), False).view
    gc.collect()
    assert set(owner) == {3}, "the view keeps the tensor alive"


def test_dlpack_refusals() -> None:
    shut = np.ones(3)
    shut.flags.writeable = False
    assert acquire(Foreign(shut), False).view.readonly
    with pytest.raises(BufferError, match="read-only"):
        acquire(Foreign(shut), True)
    with pytest.raises(BufferError, match="contiguous"):
        acquire(Foreign(np.ones((4, 4))[:, 0]), False)


class Device:
    """The CUDA array interface over memory of the host, or of nobody."""

    def __init__(self, array: np.ndarray, **changes: Any) -> None:
        self._array = array
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            **changes,
        }


def test_the_cuda_array_interface() -> None:
    data = np.arange(6, dtype="i4").reshape(2, 3)
    found = acquire(Device(data), True)
    assert (found.format, found.device, bytes(found.view)) == ("i", True, data.tobytes())
    with pytest.raises(BufferError, match="device"):
        buffer(Device(data))[0]
    for changes, error in (
        ({"data": (0x1000, False)}, BufferError),
        ({"data": (data.ctypes.data, True)}, BufferError),
        ({"mask": object()}, BufferError),
        ({"typestr": ">i4"}, BufferError),
        ({"typestr": 4}, TypeError),
        ({"strides": (4, 4)}, BufferError),
        ({"descr": 4}, TypeError),
    ):
        with pytest.raises(error):
            acquire(Device(data, **changes), True)
    with pytest.warns(RuntimeWarning, match="descr"):
        acquire(Device(data, descr=[("a", "<i2"), ("b", "<i2")]), True)


def test_formats_of_ctypes() -> None:
    assert acquire((ctypes.c_long * 3)(), True).itemsize == ctypes.sizeof(ctypes.c_long)


def test_a_cycle_of_views_is_collected() -> None:
    """Views of a buffer, and the buffer, in one cycle: in a process of its own, it may crash."""
    program = """
import gc
from ompy.mpi.buffers.memory import buffer
class Cycle: pass
for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
    memory = buffer(bytearray(b"abcdef"))
    view = memoryview(memory)
    parts = [memory, view, view[2:4]]
    cycle = Cycle()
    cycle.itself, cycle.parts = cycle, [parts[index] for index in order]
    kept = view[1:]
    del memory, view, parts, cycle
    gc.collect()
    assert bytes(kept) == b"bcdef"
print("collected")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "collected\n", "")


def test_a_cycle_with_bytes_of_any_format_is_collected() -> None:
    """Complex numbers, Fortran order and bytes swapped, in a process of its own: it may crash."""
    program = """
import gc
import numpy as np
from ompy.mpi.buffers.access import acquire
class Cycle: pass
arrays = [np.ones(4, "c16"), np.ones((3, 3), order="F"), np.ones(4, ">f8")]
arrays += [memoryview(array) for array in arrays]
for array in arrays:
    for writable in (False, True):
        view = acquire(array, writable).view
        cycle = Cycle()
        cycle.itself, cycle.view = cycle, view
        del view, cycle
        gc.collect()
print("collected")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "collected\n", "")


def test_bytes_of_parts_of_arrays() -> None:
    square = np.arange(16, dtype="c16").reshape(4, 4)
    for part in (square[1:3], square.T[:, 1:3], memoryview(square)[2:]):
        found = acquire(part, True).view
        assert bytes(found) == memoryview(part).tobytes("A")
        assert not found.readonly
    square.flags.writeable = False
    assert acquire(square[1:3], False).view.readonly
    with pytest.raises(BufferError):
        acquire(square[:, 1:3], False)


def test_a_window_that_is_null_has_no_memory() -> None:
    """Asked for it by Python itself, which took an error for memory once and crashed."""
    with pytest.raises(TypeError, match="Win"):
        int(MPI.WIN_NULL)  # type: ignore[call-overload]
    for _ in range(3):
        with pytest.raises((MPI.Exception, SystemError)):
            memoryview(MPI.WIN_NULL)


def test_memory_of_a_negative_size_is_an_error_of_mpi() -> None:
    with pytest.raises(MPI.Exception, match="cannot allocate -1 bytes") as caught:
        Alloc_mem(-1)
    assert caught.value.Get_error_class() == ERR_ARG
