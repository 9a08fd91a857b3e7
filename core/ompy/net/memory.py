"""Cross-process copy by the kernel, and the address of a piece of memory."""

from __future__ import annotations

import ctypes
import os
from struct import Struct
from typing import Final

from ompy.net.base import LinkError, ProcessCopy

_SET_PTRACER: Final = 0x59616D61  # Linux PR_SET_PTRACER, "Yama"
_ANY: Final = (1 << 64) - 1  # Linux PR_SET_PTRACER_ANY, (unsigned long) -1
_PIECES: Final = Struct("@PNPN")  # two of the kernel's struct iovec: here, and there
_ONE: Final = ctypes.c_ulong(1)
_NO_FLAGS: Final = ctypes.c_ulong(0)


class KernelCopy(ProcessCopy):
    """process_vm_readv and process_vm_writev (Linux)."""

    __slots__ = ("_here", "_pieces", "_processes", "_read", "_there", "_write")

    def __init__(self) -> None:
        """Look the calls up. Raises LinkError where the C library has none."""
        self.identity = os.getpid()
        library = ctypes.CDLL(None, use_errno=True)
        try:
            self._read = library.process_vm_readv
            self._write = library.process_vm_writev
        except AttributeError as problem:
            raise LinkError("this system has no process_vm_readv") from problem
        for call in (self._read, self._write):
            call.restype = ctypes.c_ssize_t
            call.argtypes = [
                ctypes.c_int,
                ctypes.c_void_p,
                ctypes.c_ulong,
                ctypes.c_void_p,
                ctypes.c_ulong,
                ctypes.c_ulong,
            ]
        _let_peers_copy(library)
        # used again for every call: making them costs more than a small copy
        self._pieces = bytearray(_PIECES.size)
        at = address_of(memoryview(self._pieces))
        self._here, self._there = ctypes.c_void_p(at), ctypes.c_void_p(at + _PIECES.size // 2)
        self._processes: dict[int, ctypes.c_int] = {}

    def address_of(self, view: memoryview) -> int:
        """The virtual address of the first byte of `view`."""
        return address_of(view)

    def read(self, process: int, address: int, view: memoryview) -> None:
        """Copy from another process."""
        self._transfer(self._read, process, address, view)

    def write(self, process: int, address: int, view: memoryview) -> None:
        """Copy to another process."""
        self._transfer(self._write, process, address, view)

    def _transfer(self, call: object, process: int, address: int, view: memoryview) -> None:
        here, done, total = address_of(view), 0, len(view)
        peer = self._processes.get(process)
        if peer is None:
            peer = self._processes[process] = ctypes.c_int(process)
        while done < total:
            left = total - done
            _PIECES.pack_into(self._pieces, 0, here + done, left, address + done, left)
            moved = call(peer, self._here, _ONE, self._there, _ONE, _NO_FLAGS)  # type: ignore[operator]
            if moved <= 0:
                raise LinkError(
                    f"copy of {total} bytes with process {process}: "
                    f"{os.strerror(ctypes.get_errno())}"
                )
            done += moved


def _let_peers_copy(library: ctypes.CDLL) -> None:
    """Allow the other ranks to copy with this process where Yama's ptrace_scope is 1.

    That is Ubuntu's default: only ancestors and whom a process names may reach its memory.
    There is no naming of a few, hence any process of the same user. A kernel without Yama
    refuses the call, which is as good.
    """
    allow = getattr(library, "prctl", None)
    if allow is not None:
        numbers = [ctypes.c_ulong] * 4
        allow.argtypes = [ctypes.c_int, *numbers]
        allow(_SET_PTRACER, _ANY, 0, 0, 0)


_addressof = ctypes.addressof
_byte_at = ctypes.c_char.from_buffer


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
