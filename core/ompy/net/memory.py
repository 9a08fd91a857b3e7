"""Cross-process copy by the kernel, and the address of a piece of memory."""

from __future__ import annotations

import ctypes
import os
from typing import Final

from ompy.net.base import LinkError, ProcessCopy

_SET_PTRACER: Final = 0x59616D61  # Linux PR_SET_PTRACER, "Yama"
_ANY: Final = (1 << 64) - 1  # Linux PR_SET_PTRACER_ANY, (unsigned long) -1


class _Piece(ctypes.Structure):
    """struct iovec of the kernel."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class KernelCopy(ProcessCopy):
    """process_vm_readv and process_vm_writev (Linux)."""

    __slots__ = ("_here", "_local", "_read", "_remote", "_there", "_write")

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
        self._local, self._remote = _Piece(), _Piece()
        self._here, self._there = ctypes.addressof(self._local), ctypes.addressof(self._remote)

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
        local, remote = self._local, self._remote
        while done < total:
            local.base, remote.base = here + done, address + done
            local.length = remote.length = total - done
            moved = call(process, self._here, 1, self._there, 1, 0)  # type: ignore[operator]
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


_Byte = ctypes.c_char


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
        return ctypes.addressof(_Byte.from_buffer(view))  # a fraction of the time
    buffer = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(buffer), 0)
    address = buffer.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    return address
