"""The calls of libfabric that every piece of work makes: what is written twice of the binding.

Interpreted, this module is used: a call goes through cffi, with cffi's own objects. In a compiled
module the functions of the same names in `direct.pxd` take their place, in C: there a function, an
object of libfabric's and an array are addresses, and lent memory is a view of it.
"""

from __future__ import annotations

from typing import Any, Final

from ompy_components.nic.libfabric.library import Library

EAGAIN: Final = 11  # Linux
ENOSYS: Final = 38  # Linux


def entry(library: Library, name: str, table: Any, slot: str) -> Any:
    """The function in a slot of a table, for the calls below; None where the provider has none."""
    return library.often(name, table, slot)


def place(ffi: Any, pointer: Any) -> Any:  # noqa: ARG001 - C needs it
    """An object of libfabric's, or an array, for the calls below."""
    return pointer


def lend(ffi: Any, memory: memoryview) -> Any:
    """Memory for the calls below: it cannot move while what is returned is kept.

    Raises:
        BufferError: it is not contiguous.
    """
    return ffi.from_buffer(memory)


def lend_writable(ffi: Any, memory: memoryview) -> Any:
    """The same of memory that will be written to.

    Raises:
        BufferError: it is not contiguous, or must not be written to.
    """
    return ffi.from_buffer(memory, require_writable=True)


def take_back(ffi: Any, lent: Any) -> None:
    """Lent memory is its owner's again, though what was returned for it is still kept."""
    ffi.release(lent)


def send(function: Any, endpoint: Any, lent: Any, descriptor: int, to: int, context: int) -> int:
    """`send` of the table of messages. The result is libfabric's, as of all that follow."""
    if function is None:
        return -ENOSYS
    return int(function(endpoint, lent, len(lent), descriptor, to, context))


def inject(function: Any, endpoint: Any, lent: Any, to: int) -> int:
    """`inject` of the table of messages."""
    return -ENOSYS if function is None else int(function(endpoint, lent, len(lent), to))


def receive(
    function: Any, endpoint: Any, lent: Any, descriptor: int, whence: int, context: int
) -> int:
    """`recv` of the table of messages."""
    if function is None:
        return -ENOSYS
    return int(function(endpoint, lent, len(lent), descriptor, whence, context))


def move(
    function: Any,
    endpoint: Any,
    lent: Any,
    descriptor: int,
    to: int,
    address: int,
    key: int,
    context: int,
) -> int:
    """`read` or `write` of the table of remote memory."""
    if function is None:
        return -ENOSYS
    return int(function(endpoint, lent, len(lent), descriptor, to, address, key, context))


def completions(function: Any, queue: Any, entries: Any, most: int) -> int:
    """`read` of a queue."""
    return int(function(queue, entries, most))
