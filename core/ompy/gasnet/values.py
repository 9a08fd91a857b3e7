"""Reading and writing single unsigned integers of 1 to 8 bytes, in the machine's byte order.

Source: reference gasnet.md 2 (Value ops), 6.9.
"""

# ruff: noqa: SLF001 - handles and ranks are private to users, not to this package

from __future__ import annotations

import sys
from typing import Any, Final

from ompy.gasnet.errors import BadArgument
from ompy.gasnet.handles import Handle, ThreadState
from ompy.gasnet.rank import check_integers
from ompy.gasnet.transfers import Transfers

VALUE_MAX: Final = 8  # reference gasnet.md 2: bytes of a value
_ORDER: Final = sys.byteorder


class ValueHandle(Handle):
    """A value under way; `await` it, or give it to `wait_syncnb_valget`, once."""

    __slots__ = ("memory",)

    def __init__(self, owner: ThreadState, memory: bytearray) -> None:
        owner.count()
        super().__init__(owner, owner.engine)
        self.memory = memory

    def _value(self) -> int:
        return int.from_bytes(self.memory, _ORDER)


class Values(Transfers):
    """put and get of values."""

    def put_val(self, node: int, offset: int, value: int, size: int = VALUE_MAX) -> None:
        """Write an integer of `size` bytes into a segment; negative ones in two's complement.

        Raises:
            BadArgument, ResourceError: as `put`; or the size is not 1 to 8, or the integer does
                not fit.
        """
        self.put(node, offset, bytes_of(value, size))

    def put_nb_val(self, node: int, offset: int, value: int, size: int = VALUE_MAX) -> Handle:
        """Begin to; with a handle. Raises as `put_val`."""
        return self.put_nb(node, offset, bytes_of(value, size))

    def put_nbi_val(self, node: int, offset: int, value: int, size: int = VALUE_MAX) -> None:
        """Begin to; an implicit put. Raises as `put_val`."""
        self.put_nbi(node, offset, bytes_of(value, size))

    def get_val(self, node: int, offset: int, size: int = VALUE_MAX) -> int:
        """The integer of `size` bytes in a rank's segment. Raises as `put_val`."""
        check_value_size(size)
        memory = bytearray(size)
        self.get(memory, node, offset)
        return int.from_bytes(memory, _ORDER)

    def get_nb_val(self, node: int, offset: int, size: int = VALUE_MAX) -> ValueHandle:
        """Begin to read one. Raises as `put_val`."""
        check_value_size(size)
        self._check_place(node, offset, size)
        handle = ValueHandle(self._state(), bytearray(size))
        local = memoryview(handle.memory)
        if node == self._me:
            self._load(local, node, offset)
            handle.finish()
            return handle
        try:
            self._begin_get(node, offset, local, handle)
        except BaseException:
            handle._release()
            raise
        return handle

    def wait_syncnb_valget(self, handle: ValueHandle) -> int:
        """Wait for a value that is being read, and return it.

        Raises:
            BadArgument: it has been synced already, belongs to another thread, or is none.
        """
        self._check_free()
        if handle.__class__ is not ValueHandle:
            raise BadArgument(f"this is no handle of a value but {handle!r}: wait_syncnb is for it")
        handle._check(self._state())
        if not handle.complete:
            self._wait(handle)
        handle._release()
        return handle._value()


def bytes_of(value: int, size: int) -> bytes:
    """The bytes of an integer.

    Raises:
        BadArgument: the size is not 1 to 8, or the integer has more.
    """
    check_value_size(size)
    check_integers(value)
    if not -(1 << 8 * size - 1) <= value < 1 << 8 * size:
        raise BadArgument(f"{value} does not fit into {size} bytes")
    return (value & ((1 << 8 * size) - 1)).to_bytes(size, _ORDER)


def check_value_size(size: Any) -> None:
    """Raises: BadArgument: the size of a value is not 1 to 8."""
    if size.__class__ is not int or not 1 <= size <= VALUE_MAX:
        raise BadArgument(f"a value has 1 to {VALUE_MAX} bytes, not {size}")
