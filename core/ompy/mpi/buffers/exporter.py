"""A base class whose instances export a buffer.

From Python 3.12 on a class does so by a method `__buffer__` (PEP 688). Before, the type's slot has
to be filled from outside: here by ctypes, with a function that asks the same method.
"""

from __future__ import annotations

import sys

if sys.version_info >= (3, 12):

    class Exporter:
        """Base of classes with a `__buffer__` method."""

        __slots__ = ()

else:
    import ctypes
    from typing import Any, Final

    from ompy.mpi.buffers.addresses import address_of

    _GETBUFFER: Final = 1  # PEP 3118: CPython typeslots.h, Py_bf_getbuffer
    _DEFAULT_BASETYPE: Final = 1 << 10  # PEP 384: CPython object.h, Py_TPFLAGS_BASETYPE

    class _Slot(ctypes.Structure):
        _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))

    class _Spec(ctypes.Structure):
        _fields_ = (
            ("name", ctypes.c_char_p),
            ("basicsize", ctypes.c_int),
            ("itemsize", ctypes.c_int),
            ("flags", ctypes.c_uint),
            ("slots", ctypes.c_void_p),
        )

    _fill_info = ctypes.pythonapi.PyBuffer_FillInfo
    _fill_info.argtypes = (
        ctypes.c_void_p,
        ctypes.py_object,
        ctypes.c_void_p,
        ctypes.c_ssize_t,
        ctypes.c_int,
        ctypes.c_int,
    )

    def _export(exporter: Any, view: int, flags: int) -> int:
        # The exporter owns what it exports, and its memoryview lives as long as it does. A buffer
        # of that memoryview's own would do, but the collector of Python 3.11 clears a memoryview
        # in a cycle while others still hold its buffers, and crashes when they let go.
        try:
            memory = exporter.__buffer__(flags)
            return int(
                _fill_info(view, exporter, address_of(memory), len(memory), memory.readonly, flags)
            )
        except Exception:
            ctypes.cast(view + ctypes.sizeof(ctypes.c_void_p), ctypes.POINTER(ctypes.c_void_p))[
                0
            ] = None
            return -1

    _signature = (ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
    _getbuffer = ctypes.PYFUNCTYPE(*_signature)(_export)
    _slots = (_Slot * 2)(
        _Slot(_GETBUFFER, ctypes.cast(_getbuffer, ctypes.c_void_p)), _Slot(0, None)
    )
    _spec = _Spec(
        b"ompy.mpi.buffers.exporter.Exporter",
        object.__basicsize__,
        0,
        _DEFAULT_BASETYPE,
        ctypes.addressof(_slots),
    )
    _from_spec = ctypes.pythonapi.PyType_FromSpec
    _from_spec.argtypes = (ctypes.c_void_p,)
    _from_spec.restype = ctypes.py_object
    Exporter: Any = _from_spec(ctypes.addressof(_spec))
