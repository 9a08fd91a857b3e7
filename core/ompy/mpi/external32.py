"""The portable representation `external32`: big-endian, sizes fixed by the MPI standard.

Source: MPI standard, chapter on I/O, table of external32 sizes.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

import sys
from typing import Final

from ompy.data.errors import ERR_TYPE, ERR_VALUE_TOO_LARGE
from ompy.mpi.datatype import Datatype
from ompy.mpi.errors import MPIException
from ompy.mpi.typestate import TypeState

# C's long has 4 bytes there; by symbol, because a 64 bit integer has 8
_LONGS: Final = {"LONG": True, "UNSIGNED_LONG": False}
# long doubles are IEEE quadruple there, and x87 extended on this machine
_EXTENDED: Final = {"g": 1, "G": 2}
_EXTENDED_SIZE: Final = 16  # bytes of a long double on x86
_FRACTION: Final = 112  # bits of a quadruple; reference IEEE 754
Basic = tuple[str, int]  # how it is converted, and its bytes here


def size(datatype: Datatype, count: int) -> int:
    """Bytes of `count` elements."""
    return count * sum(_external(basic) for basic in _basics(datatype._state()))


def encode(datatype: Datatype, packed: bytes | bytearray) -> bytes:
    """Packed native elements to portable ones."""
    basics = _basics(datatype._state())
    made: list[bytes] = []
    at = 0
    while at < len(packed):
        for kind, length in basics:
            made.append(_to_external(kind, packed[at : at + length]))
            at += length
    return b"".join(made)


def decode(datatype: Datatype, portable: memoryview) -> bytes:
    """Portable elements to packed native ones."""
    basics = _basics(datatype._state())
    made: list[bytes] = []
    at = 0
    while at < len(portable):
        for basic in basics:
            length = _external(basic)
            made.append(_from_external(basic[0], basic[1], bytes(portable[at : at + length])))
            at += length
    return b"".join(made)


def _basics(state: TypeState) -> list[Basic]:
    """The basic types of an element, in packing order.

    Raises:
        MPIException: ERR_TYPE, one of them has no portable form.
    """
    if state.combiner == "STRUCT":
        found: list[Basic] = []
        for times, part in zip(
            state.params["blocklengths"], state.params["datatypes"], strict=True
        ):
            found += _basics(part) * times
        return found
    if state.base is not None:
        inner = state.base.layout.size
        return _basics(state.base) * (state.layout.size // inner if inner else 0)
    if state.symbol in _LONGS:
        return [("signed" if _LONGS[state.symbol] else "unsigned", state.layout.size)]
    if state.code in _EXTENDED:
        if sys.byteorder != "little" or state.layout.size % _EXTENDED_SIZE:
            raise MPIException(ERR_TYPE, f"{state.name} has no external32 form on this machine")
        return [("extended", _EXTENDED_SIZE)] * _EXTENDED[state.code]
    if state.code and state.code in "FD":
        return [("plain", state.layout.size // 2)] * 2
    return [("plain", length) for _, length in state.layout.blocks]


def _external(basic: Basic) -> int:
    kind, length = basic
    return 4 if kind in {"signed", "unsigned"} else length


def _to_external(kind: str, native: bytes | bytearray) -> bytes:
    if kind == "extended":
        return _extended_to_quadruple(native)
    if kind == "plain":
        return bytes(native[::-1] if sys.byteorder == "little" else native)
    value = int.from_bytes(native, sys.byteorder, signed=kind == "signed")
    try:
        return value.to_bytes(4, "big", signed=kind == "signed")
    except OverflowError:
        raise MPIException(
            ERR_VALUE_TOO_LARGE, f"{value} does not fit into the 4 bytes of an external32 long"
        ) from None


def _from_external(kind: str, length: int, portable: bytes) -> bytes:
    if kind == "extended":
        return _quadruple_to_extended(portable)
    if kind == "plain":
        return portable[::-1] if sys.byteorder == "little" else portable
    value = int.from_bytes(portable, "big", signed=kind == "signed")
    return value.to_bytes(length, sys.byteorder, signed=kind == "signed")


def _extended_to_quadruple(native: bytes | bytearray) -> bytes:
    """x87's 64 bit significand has its leading bit written out, IEEE's fraction has not."""
    significand = int.from_bytes(native[:8], "little")
    sign_exponent = int.from_bytes(native[8:10], "little")
    fraction = (significand & ((1 << 63) - 1)) << (_FRACTION - 63)
    return (sign_exponent << _FRACTION | fraction).to_bytes(16, "big")


def _quadruple_to_extended(portable: bytes) -> bytes:
    value = int.from_bytes(portable, "big")
    sign_exponent = value >> _FRACTION
    significand = (value & ((1 << _FRACTION) - 1)) >> (_FRACTION - 63)
    if sign_exponent & 0x7FFF:
        significand |= 1 << 63
    return significand.to_bytes(8, "little") + sign_exponent.to_bytes(2, "little") + bytes(6)
