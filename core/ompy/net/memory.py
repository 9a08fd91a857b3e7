"""Cross-process copy by the kernel, and the address of a piece of memory."""

from __future__ import annotations

import ctypes
import os

from ompy.net.base import LinkError, ProcessCopy


class _Piece(ctypes.Structure):
    """struct iovec of the kernel."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class KernelCopy(ProcessCopy):
    """process_vm_readv and process_vm_writev (Linux)."""

    __slots__ = ("_read", "_write")

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
                ctypes.POINTER(_Piece),
                ctypes.c_ulong,
                ctypes.POINTER(_Piece),
                ctypes.c_ulong,
                ctypes.c_ulong,
            ]

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
        while done < total:
            local = _Piece(here + done, total - done)
            remote = _Piece(address + done, total - done)
            moved = call(process, local, 1, remote, 1, 0)  # type: ignore[operator]
            if moved <= 0:
                raise LinkError(
                    f"copy of {total} bytes with process {process}: "
                    f"{os.strerror(ctypes.get_errno())}"
                )
            done += moved


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
    buffer = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(buffer), 0)
    address = buffer.buf or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    return address
