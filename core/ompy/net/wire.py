"""Bytes to and from a socket that does not block, without an exception where there are none.

Interpreted, this module is used. In a compiled module the functions of the same names in
`wire.pxd` take their place.
"""

from __future__ import annotations

import os


def receive(descriptor: int, view: memoryview) -> int:
    """Bytes stored at the beginning of `view`; 0 at the end of the stream; else minus errno."""
    try:
        return os.readv(descriptor, (view,))
    except OSError as problem:
        return -(problem.errno or 1)


def send(descriptor: int, view: memoryview) -> int:
    """Bytes of `view` that the kernel has taken; else minus errno."""
    try:
        return os.write(descriptor, view)
    except OSError as problem:
        return -(problem.errno or 1)
