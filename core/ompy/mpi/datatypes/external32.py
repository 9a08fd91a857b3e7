"""The portable representation `external32`: big-endian, sizes fixed by the MPI standard.

Bytes change places column by column: one slice with a step moves the same byte of all elements, so
a large message takes as many Python steps as an element has bytes.

Source: MPI standard, chapter on I/O, table of external32 sizes.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ompy.data.errors import ERR_TYPE, ERR_VALUE_TOO_LARGE
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.signatures import Basics, Signature, signature
from ompy.mpi.datatypes.typestate import TypeState
from ompy.mpi.errors import MPIException

Memory = bytes | bytearray | memoryview
Columns = list[bytes]  # the bytes of many elements: first bytes, second bytes, and so on

_LONG: Final = 4  # bytes of C's long there; MPI 4.0, 14.5.2, table of sizes
# what one byte of each element becomes
_DOUBLED: Final = bytes(byte << 1 & 0xFF for byte in range(256))
_HALVED: Final = bytes(byte >> 1 for byte in range(256))
_TOP_BIT: Final = bytes(byte >> 7 for byte in range(256))
_LOW_BIT_ON_TOP: Final = bytes((byte & 1) << 7 for byte in range(256))
_SIGN: Final = bytes(0xFF if byte >> 7 else 0 for byte in range(256))
_NOT_NULL: Final = bytes(0x80 if byte else 0 for byte in range(256))
_NO_SIGN: Final = bytes(byte & 0x7F for byte in range(256))


def external32_size(datatype: Datatype, count: int) -> int:
    """Bytes of `count` elements."""
    return count * _portable_size(_signature(datatype._state()))


def encode(datatype: Datatype, packed: Memory) -> bytearray:
    """Packed native elements to portable ones.

    Raises:
        MPIException: ERR_VALUE_TOO_LARGE, a long does not fit; ERR_TYPE, there is no such form.
    """
    runs = _signature(datatype._state())
    native = datatype._state().layout.size
    elements = len(packed) // native if native else 0
    made = bytearray(elements * _portable_size(runs))
    for place in _places(runs, elements):
        here = place.basics.length
        columns = _columns(packed, place.native, place.native_step, here, place.number)
        _store(made, place.portable, place.portable_step, _TO[place.basics.kind](columns))
    return made


def decode(datatype: Datatype, portable: Memory) -> bytearray:
    """Portable elements to packed native ones; of one that is cut short, its whole basic types."""
    runs = _signature(datatype._state())
    each = _portable_size(runs)
    elements, rest = divmod(len(portable), each) if each else (0, 0)
    native = datatype._state().layout.size
    made = bytearray(elements * native)
    _decode_whole(runs, elements, portable, made)
    if rest:
        last = bytearray(native)
        _decode_whole(runs, 1, bytes(portable[-rest:]).ljust(each, b"\0"), last)
        made += last[: _native_part(runs, rest)]
    return made


def _native_part(of: Signature, portable: int) -> int:
    """Packed bytes of the whole basic types among the first portable bytes of an element."""
    runs, _ = of
    period = sum(run.number * _portable(run) for run in runs)
    periods, rest = divmod(portable, period)
    found = periods * sum(run.number * run.length for run in runs)
    for run in runs:
        number = min(rest // _portable(run), run.number)
        found += number * run.length
        if number < run.number:
            break
        rest -= number * _portable(run)
    return found


def _decode_whole(runs: Signature, elements: int, portable: Memory, made: bytearray) -> None:
    for place in _places(runs, elements):
        there = _portable(place.basics)
        columns = _columns(portable, place.portable, place.portable_step, there, place.number)
        _store(made, place.native, place.native_step, _FROM[place.basics.kind](columns))


class _Place(NamedTuple):
    """Equal basic types at regular steps: where they are in both representations."""

    basics: Basics
    number: int
    native: int
    native_step: int
    portable: int
    portable_step: int


def _signature(state: TypeState) -> Signature:
    runs, times = signature(state)
    runs = tuple(_PARTS.get(run.kind, _itself)(run) for run in runs)
    if any(run.kind == "extended" for run in runs) and sys.byteorder != "little":
        raise MPIException(ERR_TYPE, f"{state.name} has no external32 form on this machine")
    return runs, times


def _itself(run: Basics) -> Basics:
    return run


def _numbers(run: Basics) -> Basics:
    return Basics("plain", run.length // 2, run.number * 2)


def _extended_numbers(run: Basics) -> Basics:
    return Basics("extended", run.length // 2, run.number * 2)


_PARTS: Final = {"complex": _numbers, "long complex": _extended_numbers}


def pattern_of(state: TypeState) -> bytes | None:
    """How an element becomes portable by turning numbers round: words of 64 bits, in pairs.

    Each pair is the bytes of a number, and how many of them follow each other. The pairs are of a
    period; elements are whole ones. None if there are other changes, or nothing to turn round.
    """
    runs, _ = _signature(state)
    if sys.byteorder != "little" or not runs or any(run.kind != "plain" for run in runs):
        return None
    return array("q", [number for run in runs for number in run[1:]]).tobytes()


def _portable(basics: Basics) -> int:
    return _LONG if basics.kind in {"signed", "unsigned"} else basics.length


def _portable_size(runs: Signature) -> int:
    return runs[1] * sum(run.number * _portable(run) for run in runs[0])


def _places(of: Signature, elements: int) -> Iterator[_Place]:
    """All basic types of so many elements, in as few groups as they fall into."""
    runs, times = of
    periods = elements * times
    native = sum(run.number * run.length for run in runs)  # bytes of a period
    portable = sum(run.number * _portable(run) for run in runs)
    here = there = 0
    for run in runs:
        step, to = run.length, _portable(run)
        if periods >= run.number:
            for index in range(run.number):
                at, into = here + index * step, there + index * to
                yield _Place(run, periods, at, native, into, portable)
        else:
            for period in range(periods):
                at, into = here + period * native, there + period * portable
                yield _Place(run, run.number, at, step, into, to)
        here += run.number * step
        there += run.number * to


def _columns(memory: Memory, start: int, step: int, length: int, count: int) -> Columns:
    """The bytes of `count` elements, first to last in memory."""
    reach = (count - 1) * step + 1
    return [bytes(memory[start + at : start + at + reach : step]) for at in range(length)]


def _store(memory: bytearray, start: int, step: int, columns: Columns) -> None:
    for at, column in enumerate(columns):
        memory[start + at : start + at + (len(column) - 1) * step + 1 : step] = column


def _either(left: bytes, right: bytes) -> bytes:
    """The bits of both."""
    bits = int.from_bytes(left, "little") | int.from_bytes(right, "little")
    return bits.to_bytes(len(left), "little")


def _most_significant_first(columns: Columns) -> Columns:
    return columns[::-1] if sys.byteorder == "little" else columns


def _long_to_portable(columns: Columns, *, signed: bool) -> Columns:
    ordered = _most_significant_first(columns)
    upper, lower = ordered[:-_LONG], ordered[-_LONG:]
    filler = lower[0].translate(_SIGN) if signed else bytes(len(lower[0]))
    for column in upper:
        if column != filler:
            place = next(index for index in range(len(column)) if column[index] != filler[index])
            value = int.from_bytes(bytes(c[place] for c in ordered), "big", signed=signed)
            raise MPIException(
                ERR_VALUE_TOO_LARGE,
                f"{value} does not fit into the {_LONG} bytes of an external32 long",
            )
    return lower


def _portable_to_long(columns: Columns, *, signed: bool) -> Columns:
    filler = columns[0].translate(_SIGN) if signed else bytes(len(columns[0]))
    return _most_significant_first([filler] * (_NATIVE_LONG - _LONG) + columns)


def _signed_to_portable(columns: Columns) -> Columns:
    return _long_to_portable(columns, signed=True)


def _unsigned_to_portable(columns: Columns) -> Columns:
    return _long_to_portable(columns, signed=False)


def _portable_to_signed(columns: Columns) -> Columns:
    return _portable_to_long(columns, signed=True)


def _portable_to_unsigned(columns: Columns) -> Columns:
    return _portable_to_long(columns, signed=False)


def _extended_to_portable(columns: Columns) -> Columns:
    """x87's 64 bit significand has its leading bit written out, IEEE's fraction has not.

    So the fraction begins with the significand shifted by one bit; the other 48 bits are 0.
    """
    significand = columns[7::-1]
    carried = [column.translate(_TOP_BIT) for column in significand[1:]]
    carried.append(bytes(len(significand[0])))
    fraction = [
        _either(column.translate(_DOUBLED), carry)
        for column, carry in zip(significand, carried, strict=True)
    ]
    return [columns[9], columns[8], *fraction, *[bytes(len(columns[0]))] * 6]


def _portable_to_extended(columns: Columns) -> Columns:
    sign_exponent, fraction = columns[:2], columns[2:10]
    exponent = _either(sign_exponent[0].translate(_NO_SIGN), sign_exponent[1])
    carried = [exponent.translate(_NOT_NULL)]  # the leading bit, unless it is zero or subnormal
    carried += [column.translate(_LOW_BIT_ON_TOP) for column in fraction[:-1]]
    significand = [
        _either(column.translate(_HALVED), carry)
        for column, carry in zip(fraction, carried, strict=True)
    ]
    return [*significand[::-1], *sign_exponent[::-1], *[bytes(len(columns[0]))] * 6]


_NATIVE_LONG: Final = 8  # bytes of C's long on 64 bit Linux
Conversion = Callable[[Columns], Columns]
_TO: Final[dict[str, Conversion]] = {
    "plain": _most_significant_first,
    "signed": _signed_to_portable,
    "unsigned": _unsigned_to_portable,
    "extended": _extended_to_portable,
}
_FROM: Final[dict[str, Conversion]] = {
    "plain": _most_significant_first,
    "signed": _portable_to_signed,
    "unsigned": _portable_to_unsigned,
    "extended": _portable_to_extended,
}
