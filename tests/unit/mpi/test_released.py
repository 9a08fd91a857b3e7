"""What is a user's and is released on an error's way: his code that runs then loses nothing."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ompy import MPI

_DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)


class Capsules:
    """Gives capsules whose destructor is Python code: it raises and handles an exception."""

    def __init__(self, data: np.ndarray) -> None:
        self.data = data
        self.kept = data.__dlpack__()
        self.released = 0
        self.destructor = _DESTRUCTOR(self._release)

    def _release(self, _: int) -> None:
        self.released += 1
        try:
            raise LookupError("of the destructor")
        except LookupError:
            ctypes.pythonapi.PyErr_Clear()

    def __dlpack__(self, **_: Any) -> Any:
        return _new(_pointer(self.kept, b"dltensor"), b"dltensor", self.destructor)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


CALLS: dict[str, Callable[[Any], Any]] = {
    "Send": lambda spec: MPI.COMM_SELF.Send(spec, 0),
    "Isend": lambda spec: MPI.COMM_SELF.Isend(spec, 0),
    "Recv": lambda spec: MPI.COMM_SELF.Recv(spec, 0),
    "Irecv": lambda spec: MPI.COMM_SELF.Irecv(spec, 0),
    "Sendrecv": lambda spec: MPI.COMM_SELF.Sendrecv(spec, 0, 0, spec, 0, 0),
    "Bcast": lambda spec: MPI.COMM_SELF.Bcast(spec, 0),
    "Allreduce": lambda spec: MPI.COMM_SELF.Allreduce(spec, spec),
    "Allgatherv": lambda spec: MPI.COMM_SELF.Allgatherv(spec, spec),
    "Alltoallw": lambda spec: MPI.COMM_SELF.Alltoallw(spec, spec),
    "Reduce_local": lambda spec: MPI.SUM.Reduce_local(spec, spec),
}
SPECS: dict[str, Callable[[Any], Any]] = {
    "too small": lambda buffer: [buffer, 1, MPI.INT],
    "no whole number": lambda buffer: [buffer, MPI.INT],
    "negative": lambda buffer: [buffer, -1, MPI.BYTE],
    "unknown code": lambda buffer: [buffer, 1, "no such"],
    "displaced": lambda buffer: [buffer, (1, 99), MPI.BYTE],
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("spec", SPECS)
def test_a_capsule(call: str, spec: str) -> None:
    buffer = Capsules(np.zeros(3, "i1"))
    with pytest.raises((ValueError, KeyError, TypeError)) as caught:
        CALLS[call](SPECS[spec](buffer))
    assert not isinstance(caught.value, LookupError) or spec == "unknown code"
    del caught
    if call != "Alltoallw":  # which reads its datatypes first
        assert buffer.released
