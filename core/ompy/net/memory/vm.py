"""The kernel's copy between processes, one call of it. Compiled, `vm.pxd` takes its place.

process_vm_readv and process_vm_writev (Linux 3.2).
"""

from __future__ import annotations

import ctypes
from functools import cache
from struct import Struct
from threading import Lock
from time import perf_counter
from typing import Final

from ompy.data.run_parts import parts_of_runs

_PIECES: Final = Struct("@PNPN")  # two of the kernel's struct iovec: here, and there
_ONE: Final = ctypes.c_ulong(1)
_NO_FLAGS: Final = ctypes.c_ulong(0)
# used again for every call: making them costs more than a small copy; by one thread at a time
_in_use: Final = Lock()
_pieces: Final = bytearray(_PIECES.size)
_addressof = ctypes.addressof
_byte_at = ctypes.c_char.from_buffer
_HERE: Final = ctypes.c_void_p(_addressof(_byte_at(_pieces)))
_THERE: Final = ctypes.c_void_p(_addressof(_byte_at(_pieces)) + _PIECES.size // 2)
# where a move crawls, it goes by way of memory half a page apart: README.md, "Moves that crawl"
LONG_MOVE: Final = 2048  # bytes; measured: README.md
PAGE: Final = 4096  # bytes, within which places count; measured: README.md
CRAWLING: Final = 31  # so many places behind the source at most; measured: README.md
TRIED: Final = 16384  # bytes that are moved to see where moves crawl here; arbitrary: some 0.3 us
SLOW: Final = 3  # times as long as elsewhere; arbitrary: README.md has eight times and more
PART: Final = 32768  # bytes; arbitrary: stays in the nearest cache
PIECES: Final = 512  # runs of one call, compiled; arbitrary: the kernel takes 1024 (IOV_MAX)
_apart: Final = memoryview(bytearray(PART + PAGE))
_APART: Final = _addressof(_byte_at(_apart))
_processes: Final[dict[int, ctypes.c_int]] = {}
_library: Final = ctypes.CDLL(None, use_errno=True)
THERE: Final = hasattr(_library, "process_vm_readv")  # this system has the calls
if THERE:
    _calls = (_library.process_vm_readv, _library.process_vm_writev)
    for _call in _calls:
        _call.restype = ctypes.c_ssize_t
        _call.argtypes = [
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.c_ulong,
            ctypes.c_void_p,
            ctypes.c_ulong,
            ctypes.c_ulong,
        ]


def move(writes: bool, process: int, address: int, view: memoryview, done: int) -> int:
    """Copy what of `view` lies behind byte `done`, as much as the kernel will at once.

    Args:
        writes: to the other process, rather than from it.
        process: the other.
        address: in it, of what belongs to byte 0 of `view`.
        view: format B, contiguous, not empty.
        done: bytes that are copied already.

    Returns:
        Bytes copied, or a negative error number.
    """
    peer = _processes.get(process)
    if peer is None:
        peer = _processes[process] = ctypes.c_int(process)
    here, there, left = address_of(view) + done, address + done, len(view) - done
    target, source = (there, here) if writes else (here, there)
    behind = (target - source - 1) % PAGE
    if left < LONG_MOVE or behind >= CRAWLING or behind >= crawling_places():
        with _in_use:
            return _ask_kernel(writes, peer, here, there, left)
    apart, left = (there + PAGE // 2 - _APART) % PAGE, min(left, PART)
    part = view[done : done + left]
    with _in_use:
        if writes:
            _apart[apart : apart + left] = part
        moved = _ask_kernel(writes, peer, _APART + apart, there, left)
        if moved > 0 and not writes:
            part[:moved] = _apart[apart : apart + moved]
    return moved


def move_runs(
    writes: bool,
    process: int,
    address: int,
    inner: int,
    stride: int,
    outer_stride: int,
    length: int,
    table: memoryview,
    each: int,
    extent: int,
    view: memoryview,
    done: int,
) -> int:
    """Copy packed bytes to or from runs of another process, as much as the kernel will at once.

    Compiled, one call of the kernel moves up to PIECES runs; here it moves what is left of one.
    Where the runs are is said as to `borrowed.gather_runs`, counted from `address`; `done` bytes
    are copied already. Returns what `move` does.
    """
    loops = inner, stride, outer_stride, length
    at, _, left = next(parts_of_runs(loops, table, each, extent, done, len(view) - done))
    return move(writes, process, address + at, view[done : done + left], 0)


@cache
def crawling_places() -> int:
    """How many places behind its source a string move crawls on this processor: 0, 15 or 31."""
    room = bytearray(2 * TRIED + 3 * PAGE)
    source = _addressof(_byte_at(room))
    target = source + TRIED + PAGE - TRIED % PAGE
    usual = _time_of_move(target + PAGE // 2, source)
    if _time_of_move(target + 16, source) > SLOW * usual:
        return CRAWLING
    return 15 if _time_of_move(target + 1, source) > SLOW * usual else 0


def _time_of_move(target: int, source: int) -> float:
    """The least seconds of a few tries."""
    least = 1.0
    for _ in range(5):
        began = perf_counter()
        ctypes.memmove(target, source, TRIED)
        least = min(least, perf_counter() - began)
    return least


def _ask_kernel(writes: bool, peer: ctypes.c_int, here: int, there: int, count: int) -> int:
    """One call of the kernel's."""
    _PIECES.pack_into(_pieces, 0, here, count, there, count)
    moved: int = _calls[writes](peer, _HERE, _ONE, _THERE, _ONE, _NO_FLAGS)
    return moved if moved >= 0 else -ctypes.get_errno()


class _Buffer(ctypes.Structure):
    """Py_buffer, up to the fields read here and room for the rest."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("rest", ctypes.c_byte * 128),
    )


def address_of(view: memoryview) -> int:
    """Virtual address of the first byte of `view`, read-only views included.

    The address is good for as long as the memory under `view` is alive and not resized.
    """
    if not view.readonly and len(view):
        return _addressof(_byte_at(view))  # a fraction of the time
    buffer = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(buffer), 0)
    address = buffer.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    return address
